package interop;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.activemq.command.Command;
import org.apache.activemq.command.ConnectionError;
import org.apache.activemq.command.ExceptionResponse;
import org.apache.activemq.command.WireFormatInfo;
import org.apache.activemq.openwire.OpenWireFormat;
import org.apache.activemq.openwire.OpenWireFormatFactory;

/** A client that may break the rules: it writes what it is told and lists what comes back. */
final class RawPeer implements AutoCloseable {
    final OpenWireFormat format;
    private final Socket socket;
    private final DataOutputStream out;
    private final DataInputStream in;

    RawPeer(Stage stage, long inactivityMs) throws IOException {
        OpenWireFormatFactory factory = new OpenWireFormatFactory();
        factory.setTightEncodingEnabled(false);
        factory.setCacheEnabled(false);
        factory.setMaxInactivityDuration(inactivityMs);
        factory.setMaxInactivityDurationInitalDelay(inactivityMs);
        format = (OpenWireFormat) factory.createWireFormat();
        socket = new Socket(stage.host(), stage.port());
        socket.setTcpNoDelay(true);
        out = new DataOutputStream(socket.getOutputStream());
        in = new DataInputStream(socket.getInputStream());
    }

    /** Exchanges what opens a conversation. */
    void negotiate() throws IOException {
        send(format.getPreferedWireFormatInfo());
        WireFormatInfo theirs = (WireFormatInfo) format.unmarshal(in);
        format.renegotiateWireFormat(theirs);
    }

    void send(Command command) throws IOException {
        format.marshal(command, out);
        out.flush();
    }

    void send(byte... bytes) throws IOException {
        out.write(bytes);
        out.flush();
    }

    byte[] encoded(Command command) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        format.marshal(command, new DataOutputStream(bytes));
        return bytes.toByteArray();
    }

    /** What comes until the broker closes the connection, or until the time is over: counts by kind, and the end. */
    String seen(int timeoutMs) {
        Map<String, Integer> kinds = new TreeMap<>();
        long end = System.nanoTime() + timeoutMs * 1_000_000L;
        String how;
        try {
            while (true) {
                socket.setSoTimeout((int) Math.max(1, (end - System.nanoTime()) / 1_000_000));
                kinds.merge(kind(format.unmarshal(in)), 1, Integer::sum);
            }
        } catch (SocketTimeoutException open) {
            how = "stays open";
        } catch (SocketException | java.io.EOFException closed) {
            how = "closed";
        } catch (IOException strange) {
            how = "strange bytes: " + strange.getMessage();
        }
        // Greetings may be lost when the connection is closed at once.
        kinds.keySet().removeIf(kind -> kind.equals("BrokerInfo") || kind.equals("WireFormatInfo"));
        boolean alive = kinds.remove("KeepAliveInfo") != null;
        return kinds.keySet() + (alive ? " and KeepAlive" : "") + ", " + how;
    }

    private static String kind(Object command) {
        String name = command.getClass().getSimpleName();
        if (command instanceof ConnectionError) {
            return name + " " + ((ConnectionError) command).getException().getClass().getName();
        }
        if (command instanceof ExceptionResponse) {
            return name + " " + ((ExceptionResponse) command).getException().getClass().getName();
        }
        return name;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
