import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import org.apache.activemq.ActiveMQConnectionFactory;

/** The same as worker.py with the Java client: OPERATION URL QUEUE SESSIONS MESSAGES WARM_UP BODY_BYTES USER PASSWORD. */
public final class Worker {
    private final String operation;
    private final int sessions;
    private final String body;
    private final ActiveMQConnectionFactory factory;

    private Worker(String[] words) {
        operation = words[0];
        String options = operation.equals("send") ? "&jms.useAsyncSend=true"
            : operation.equals("confirm") ? "&jms.alwaysSyncSend=true" : "";
        factory = new ActiveMQConnectionFactory(words[7], words[8], words[1] + "?jms.prefetchPolicy.queuePrefetch=1000" + options);
        sessions = Integer.parseInt(words[3]);
        body = "x".repeat(Integer.parseInt(words[6]));
    }

    public static void main(String[] words) throws Exception {
        Worker worker = new Worker(words);
        Connection warm = worker.connect();
        worker.work(warm, words[2] + ".warm", Integer.parseInt(words[5]));
        Connection connection = worker.connect();
        System.out.println("ready");
        System.out.flush();
        System.in.read();
        System.gc();
        long cpu = cpu(), start = System.nanoTime();
        worker.work(connection, words[2], Integer.parseInt(words[4]));
        double elapsed = (System.nanoTime() - start) / 1e9;
        System.out.printf("{\"elapsed_s\": %f, \"cpu_s\": %f}%n", elapsed, (cpu() - cpu) / 1e9);
        System.out.flush();
        System.exit(0);
    }

    private static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
            .getProcessCpuTime();
    }

    private Connection connect() throws Exception {
        Connection connection = factory.createConnection();
        connection.start();
        return connection;
    }

    private void work(Connection connection, String queue, int messages) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < sessions; number++) {
            String own = queue + "." + number;
            Thread thread = new Thread(() -> {
                try {
                    if (operation.equals("receive")) {
                        receive(connection, own, messages / sessions);
                    } else {
                        send(connection, own, messages / sessions);
                    }
                } catch (Exception error) {
                    error.printStackTrace();
                    System.exit(1);
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        connection.close();
    }

    private void send(Connection connection, String queue, int messages) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (int at = 0; at < messages; at++) {
            producer.send(session.createTextMessage(body));
        }
        session.close();
    }

    private void receive(Connection connection, String queue, int messages) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        for (int at = 0; at < messages; at++) {
            TextMessage message = (TextMessage) consumer.receive(60_000);
            if (message.getText().length() != body.length()) {
                throw new RuntimeException("a message has become another one");
            }
        }
        session.close();
    }
}
