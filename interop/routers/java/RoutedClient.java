package interop.routers;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Does what the lines of standard input say, and answers each by a line: {@code ok}, a tab and what came of it, or
 * {@code error}, a tab and the error. Words of a line are separated by tabs.
 */
public final class RoutedClient {
    private final Map<String, ActiveMQConnection> connections = new HashMap<>();

    private RoutedClient() {}

    public static void main(String[] arguments) throws Exception {
        RoutedClient client = new RoutedClient();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = "ok\t" + client.obey(line.split("\t"));
            } catch (Exception error) {
                answer = "error\t" + error;
            }
            System.out.println(answer.replace("\n", " "));
            System.out.flush();
        }
        // Threads of a client that lost its broker must not keep the process.
        System.exit(0);
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "connect":
                return connect(words[1], words[2], words[3], words[4]);
            case "where":
                return connections.get(words[1]).getTransport().getRemoteAddress();
            case "send":
                return send(connections.get(words[1]), words[2], words[3]);
            case "receive":
                return receive(connections.get(words[1]), words[2], Long.parseLong(words[3]));
            case "close":
                connections.remove(words[1]).close();
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** Where the connection ended up. */
    private String connect(String name, String url, String user, String password) throws Exception {
        ActiveMQConnection connection =
                (ActiveMQConnection) new ActiveMQConnectionFactory(user, password, url).createConnection();
        try {
            connection.start();
        } catch (Exception error) {
            connection.close();
            throw error;
        }
        connections.put(name, connection);
        return connection.getTransport().getRemoteAddress();
    }

    private static String send(ActiveMQConnection connection, String queue, String text) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createProducer(session.createQueue(queue)).send(session.createTextMessage(text));
        session.close();
        return "";
    }

    /** Nothing when no message comes. */
    private static String receive(ActiveMQConnection connection, String queue, long waitMs) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        Message message = consumer.receive(waitMs);
        String text = message == null ? "" : ((TextMessage) message).getText();
        session.close();
        return text;
    }
}
