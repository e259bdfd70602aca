package interop;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** A client of STOMP 1.2 on the same port. */
final class StompPeer implements AutoCloseable {
    private static final List<String> SAID = List.of("correlation-id", "n", "own", "persistent", "priority", "type");

    private final Socket socket;
    private final InputStream input;

    StompPeer(String host, int port) throws IOException {
        socket = new Socket(host, port);
        socket.setSoTimeout((int) Scene.LONG_MS);
        input = socket.getInputStream();
        write("CONNECT", "", "accept-version:1.2", "host:interop", "login:" + Scene.USER, "passcode:" + Scene.PASSWORD);
        read();
    }

    /** Returns when the broker has handled it. */
    void subscribe(String destination) throws IOException {
        write("SUBSCRIBE", "", "id:1", "destination:" + destination, "ack:auto", "receipt:r");
        read();
    }

    void send(String destination, String body, String... headers) throws IOException {
        List<String> all = new ArrayList<>(Arrays.asList(headers));
        all.add("destination:" + destination);
        all.add("receipt:r");
        write("SEND", body, all.toArray(new String[0]));
        read();
    }

    /** The next MESSAGE: the headers that carry what a sender said, by name, and the body. */
    void sayMessage(Stage stage) throws IOException {
        String[] parts = read().split("\n\n", 2);
        List<String> headers = new ArrayList<>(Arrays.asList(parts[0].split("\n")));
        stage.say("%s", headers.remove(0));
        headers.removeIf(header -> !SAID.contains(header.substring(0, header.indexOf(':'))));
        Collections.sort(headers);
        for (String header : headers) {
            stage.say("%s", header);
        }
        stage.say("body %s", Arrays.toString(parts[1].getBytes(StandardCharsets.UTF_8)));
    }

    private void write(String command, String body, String... headers) throws IOException {
        String frame = command + "\n" + String.join("\n", headers) + "\n\n" + body + "\0";
        socket.getOutputStream().write(frame.getBytes(StandardCharsets.UTF_8));
    }

    /** The next frame without the NUL that ends it; a body of known length may hold some. */
    private String read() throws IOException {
        ByteArrayOutputStream frame = new ByteArrayOutputStream();
        int left = -1;
        for (int next = input.read(); next != 0 || left > 0; next = input.read()) {
            if (next < 0) {
                throw new EOFException("in " + frame.toString(StandardCharsets.UTF_8));
            }
            if (frame.size() > 0 || next != '\n') {
                frame.write(next);
                left--;
            }
            String text = left < 0 && next == '\n' ? frame.toString(StandardCharsets.UTF_8) : "";
            if (text.endsWith("\n\n")) {
                left = lengthIn(text);
            }
        }
        return frame.toString(StandardCharsets.UTF_8);
    }

    private static int lengthIn(String head) {
        for (String header : head.split("\n")) {
            if (header.startsWith("content-length:")) {
                return Integer.parseInt(header.substring("content-length:".length()));
            }
        }
        return -1;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
