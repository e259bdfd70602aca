package bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * The load generator. It reads commands from standard input, one a line, and answers each with one line of JSON.
 *
 * <ul>
 *   <li>{@code confirm url=... user=... password=... queue=... withinMs=...} connects, over and over until something
 *       listens, and sends a persistent message;
 *   <li>{@code run} and the words of {@link Job} connects and says it is ready; after {@code go} it runs and tells the
 *       outcome.
 * </ul>
 */
public final class Main {
    private static final long PAUSE_MS = 2;

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.trim().split(" +");
            try {
                if (words[0].equals("confirm")) {
                    confirm(words);
                } else if (words[0].equals("run")) {
                    run(new Job(words), commands);
                } else {
                    throw new IllegalArgumentException("there is no command " + words[0]);
                }
            } catch (Exception error) {
                error.printStackTrace();
                say("{\"error\":\"" + plain(error) + "\"}");
            }
        }
        // Threads of a client that lost its broker must not keep the process.
        System.exit(0);
    }

    private static void run(Job job, BufferedReader commands) throws Exception {
        Run run = new Run(job);
        try {
            run.open();
            say("{\"ready\":true}");
            commands.readLine();
            say(run.go());
        } finally {
            run.close();
        }
    }

    private static void confirm(String[] words) throws Exception {
        String[] values = new String[words.length];
        for (int index = 1; index < words.length; index++) {
            values[index] = words[index].substring(words[index].indexOf('=') + 1);
        }
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(values[2], values[3], values[1]);
        long end = System.nanoTime() + Long.parseLong(values[5]) * 1_000_000;
        while (true) {
            Connection connection = null;
            try {
                connection = factory.createConnection();
                Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                MessageProducer producer = session.createProducer(session.createQueue(values[4]));
                producer.setDeliveryMode(DeliveryMode.PERSISTENT);
                producer.send(session.createTextMessage("first"));
                say("{\"confirmed\":true}");
                return;
            } catch (JMSException notYet) {
                if (System.nanoTime() > end) {
                    throw notYet;
                }
                Thread.sleep(PAUSE_MS);
            } finally {
                if (connection != null) {
                    connection.close();
                }
            }
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static String plain(Exception error) {
        return error.toString().replace("\\", "/").replace("\"", "'").replaceAll("\\p{Cntrl}", " ");
    }
}
