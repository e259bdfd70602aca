package interop;

import java.util.function.BiConsumer;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** What policies give to late subscribers, and whom they close for being slow. */
final class TopicPolicy implements Program {
    private static final String ASKING = "?consumer.retroactive=true";

    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("the last two for those that ask", stage -> late(stage, ".lasttwo.a", ".lasttwo.a" + ASKING));
        cases.accept("nothing for others", stage -> late(stage, ".lasttwo.a", ".lasttwo.a"));
        cases.accept("by a wildcard", stage -> late(stage, ".lasttwo.a", ".lasttwo.*" + ASKING));
        cases.accept("the last one for all", stage -> late(stage, ".image", ".image"));
        cases.accept("those of a time", stage -> late(stage, ".timed", ".timed" + ASKING));
        cases.accept("those of a size", stage -> late(stage, ".sized", ".sized" + ASKING));
        cases.accept("the retained one", stage -> retained(stage, "m1"));
        cases.accept("a retained one that was taken back", stage -> retained(stage, ""));
        cases.accept("served by priority", TopicPolicy::priority);
        cases.accept("a slow consumer of a topic", stage -> slow(stage, new ActiveMQTopic(stage.own(".slow"))));
        cases.accept("a slow consumer of a topic, and its connection", stage -> cut(stage));
        cases.accept("a consumer that acknowledges nothing", stage -> slow(stage, new ActiveMQQueue(stage.own(".mute"))));
    }

    private static void late(Stage stage, String sent, String read) throws Exception {
        stage.send(new ActiveMQTopic(stage.own(sent)), 4);
        MessageConsumer consumer =
                stage.connect().createSession(false, 1).createConsumer(new ActiveMQTopic(stage.own(read)));
        stage.send(new ActiveMQTopic(stage.own(sent)), "new");
        Message message;
        do {
            message = consumer.receive(Stage.LONG_MS);
            stage.say("%s", Stage.show(message));
        } while (message != null && !"new".equals(Stage.body(message)));
    }

    private static void retained(Stage stage, String last) throws Exception {
        Topic topic = new ActiveMQTopic(stage.own(".retained"));
        Session session = stage.connect().createSession(false, 1);
        MessageProducer producer = session.createProducer(topic);
        for (String body : new String[] {"m0", last}) {
            javax.jms.BytesMessage message = session.createBytesMessage();
            message.writeBytes(body.getBytes("UTF-8"));
            message.setBooleanProperty("ActiveMQ.Retain", true);
            producer.send(message);
        }
        producer.send(session.createTextMessage("unmarked"));
        MessageConsumer consumer = session.createConsumer(new ActiveMQTopic(stage.own(".retained") + ASKING));
        producer.send(session.createTextMessage("new"));
        Message message = consumer.receive(Stage.LONG_MS);
        stage.say("%s", Stage.show(message));
        stage.say("retained %s", message.getBooleanProperty("ActiveMQ.Retained"));
        stage.say("still asks for it %s", message.propertyExists("ActiveMQ.Retain"));
        if (message instanceof javax.jms.BytesMessage) {
            stage.say("%s", Stage.show(consumer.receive(Stage.LONG_MS)));
        }
    }

    private static void priority(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, 1);
        java.util.List<String> order = java.util.Collections.synchronizedList(new java.util.ArrayList<>());
        java.util.concurrent.CountDownLatch all = new java.util.concurrent.CountDownLatch(3);
        for (String priority : new String[] {"0", "9", "4"}) {
            session.createConsumer(new ActiveMQTopic(stage.own(".ranked") + "?consumer.priority=" + priority))
                    .setMessageListener(message -> {
                        order.add(priority);
                        all.countDown();
                    });
        }
        stage.send(new ActiveMQTopic(stage.own(".ranked")), 1);
        all.await(Stage.LONG_MS, java.util.concurrent.TimeUnit.MILLISECONDS);
        stage.say("%s", order);
    }

    private static MessageConsumer sleeper(ActiveMQConnection connection, ActiveMQDestination destination)
            throws JMSException {
        connection.getPrefetchPolicy().setAll(2);
        return connection.createSession(false, Session.CLIENT_ACKNOWLEDGE).createConsumer(destination);
    }

    private static boolean closes(MessageConsumer consumer) throws Exception {
        for (long waited = 0; waited < Stage.LONG_MS; waited += 100) {
            try {
                consumer.getMessageSelector();
            } catch (javax.jms.IllegalStateException closed) {
                return true;
            }
            Thread.sleep(100);
        }
        return false;
    }

    private static void slow(Stage stage, ActiveMQDestination destination) throws Exception {
        ActiveMQConnection connection = stage.connect();
        MessageConsumer consumer = sleeper(connection, destination);
        stage.send(destination, 8);
        consumer.receive(Stage.LONG_MS);
        stage.say("closed %s", closes(consumer));
        stage.attempt("a receive", () -> consumer.receive(Stage.SHORT_MS));
        stage.attempt("another close", () -> consumer.close());
        stage.attempt("another consumer", () -> connection.createSession(false, 1).createConsumer(stage.queue(".other")));
    }

    private static void cut(Stage stage) throws Exception {
        ActiveMQConnection connection = stage.connect();
        MessageConsumer consumer = sleeper(connection, new ActiveMQTopic(stage.own(".cut")));
        stage.send(new ActiveMQTopic(stage.own(".cut")), 8);
        consumer.receive(Stage.LONG_MS);
        for (long waited = 0; waited < Stage.LONG_MS && !connection.isTransportFailed(); waited += 100) {
            Thread.sleep(100);
        }
        stage.say("failed %s", connection.isTransportFailed());
    }
}
