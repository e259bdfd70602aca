package interop;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** A wire between one client and the broker, which can be cut. */
final class Cut implements AutoCloseable {
    private final ServerSocket listener;
    private Socket near;
    private Socket far;

    Cut(String host, int port) throws IOException {
        listener = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"));
        start(() -> {
            near = listener.accept();
            far = new Socket(host, port);
            near.setTcpNoDelay(true);
            far.setTcpNoDelay(true);
            start(() -> copy(near, far));
            copy(far, near);
        });
    }

    int port() {
        return listener.getLocalPort();
    }

    /** Both ends see the connection closed. */
    void cut() throws IOException {
        far.close();
        near.close();
    }

    @Override
    public void close() throws IOException {
        listener.close();
    }

    private interface Work {
        void run() throws IOException;
    }

    private static void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException closed) {
                // The wire is cut or the case is over.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void copy(Socket from, Socket to) throws IOException {
        try (InputStream in = from.getInputStream(); OutputStream out = to.getOutputStream()) {
            byte[] buffer = new byte[65536];
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                out.write(buffer, 0, count);
            }
        }
    }
}
