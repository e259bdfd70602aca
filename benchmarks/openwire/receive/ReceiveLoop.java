package bench;

import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;

/** Receives as JmsTemplate.receive does: a session and a consumer for each message, on one connection. */
public final class ReceiveLoop {
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        int waiting = Integer.parseInt(arguments[3]);
        int calls = Integer.parseInt(arguments[4]);
        String body = "x".repeat(Integer.parseInt(arguments[5]));
        boolean persistent = Boolean.parseBoolean(arguments[7]);
        Connection connection =
                new ActiveMQConnectionFactory(arguments[1], arguments[2], url).createConnection();
        connection.start();
        for (int round = 0; round < Integer.parseInt(arguments[6]); round++) {
            String queue = "receive.loop." + waiting + "." + round;
            fill(connection, queue, waiting, body, persistent);
            long began = System.nanoTime();
            for (int number = 0; number < calls; number++) {
                receive(connection, queue, number);
            }
            System.out.println((System.nanoTime() - began) / 1e3 / calls);
        }
        connection.close();
    }

    private static void fill(Connection connection, String queue, int count, String body, boolean persistent)
            throws Exception {
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        producer.setDeliveryMode(persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        for (int number = 0; number < count; number++) {
            producer.send(session.createTextMessage(number + " " + body));
        }
        session.commit();
        session.close();
    }

    private static void receive(Connection connection, String queue, int number) throws Exception {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        Message message = consumer.receive(10_000);
        consumer.close();
        session.close();
        if (message == null || !((TextMessage) message).getText().startsWith(number + " ")) {
            throw new IllegalStateException("message " + number + " was expected, not " + message);
        }
        if (message.getJMSRedelivered()) {
            throw new IllegalStateException("message " + number + " is said to come again");
        }
    }
}
