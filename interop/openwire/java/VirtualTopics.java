package interop;

import java.util.function.BiConsumer;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** {@code VirtualTopic.>} and its queues {@code Consumer.*.VirtualTopic.>}. */
final class VirtualTopics implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("each name gets a copy", VirtualTopics::copies);
        cases.accept("consumers of a name share", VirtualTopics::share);
        cases.accept("messages wait for a name that was there once", VirtualTopics::wait);
        cases.accept("no queue before the first consumer", stage -> {
            stage.send(topic(stage), 2);
            stage.drain("a", queue(stage, "a"));
        });
        cases.accept("plain subscribers see them too", VirtualTopics::plain);
        cases.accept("destination of a copy", VirtualTopics::named);
        cases.accept("selector of a consumer", VirtualTopics::selector);
        cases.accept("wildcard consumer", VirtualTopics::wildcard);
        cases.accept("send to the queue itself", stage -> {
            stage.drain("made", queue(stage, "a"));
            stage.send(queue(stage, "a"), 1);
            stage.drain("a", queue(stage, "a"));
        });
        cases.accept("transaction", VirtualTopics::transaction);
        cases.accept("send to a queue of a topic's name", stage -> {
            stage.drain("made", queue(stage, "a"));
            stage.send(new ActiveMQQueue(topic(stage).getPhysicalName()), 1);
            stage.drain("a", queue(stage, "a"));
            stage.drain("queue of the same name", new ActiveMQQueue(topic(stage).getPhysicalName()));
        });
    }

    private static ActiveMQTopic topic(Stage stage) {
        return new ActiveMQTopic("VirtualTopic." + stage.own(""));
    }

    private static ActiveMQQueue queue(Stage stage, String name) {
        return new ActiveMQQueue("Consumer." + name + ".VirtualTopic." + stage.own(""));
    }

    private static MessageConsumer consumer(Stage stage, String name) throws Exception {
        return stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue(stage, name));
    }

    private static void copies(Stage stage) throws Exception {
        MessageConsumer a = consumer(stage, "a");
        MessageConsumer b = consumer(stage, "b");
        stage.send(topic(stage), 3);
        stage.receive("a", a, 3);
        stage.receive("b", b, 3);
    }

    private static void share(Stage stage) throws Exception {
        MessageConsumer one = consumer(stage, "a");
        MessageConsumer two = consumer(stage, "a");
        stage.send(topic(stage), 4);
        stage.receive("one", one, 2);
        stage.receive("two", two, 2);
    }

    private static void wait(Stage stage) throws Exception {
        consumer(stage, "a").close();
        stage.send(topic(stage), 3);
        stage.drain("a", queue(stage, "a"));
    }

    private static void plain(Stage stage) throws Exception {
        MessageConsumer a = consumer(stage, "a");
        MessageConsumer topic = stage.connect().createSession(false, 1).createConsumer(topic(stage));
        stage.send(topic(stage), 2);
        stage.receive("a", a, 2);
        stage.receive("topic", topic, 2);
    }

    private static void named(Stage stage) throws Exception {
        MessageConsumer a = consumer(stage, "a");
        stage.send(topic(stage), 1);
        Message message = a.receive(Stage.LONG_MS);
        stage.say("destination %s", message.getJMSDestination());
        stage.say("original %s", ((ActiveMQMessage) message).getOriginalDestination());
    }

    private static void selector(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer a = session.createConsumer(queue(stage, "a"), "n = 2");
        for (int number = 1; number <= 3; number++) {
            Message message = session.createTextMessage("m" + number);
            message.setIntProperty("n", number);
            session.createProducer(topic(stage)).send(message);
        }
        stage.receive("a", a, 1);
        a.close();
        stage.drain("others wait", queue(stage, "a"));
    }

    private static void wildcard(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer all =
                session.createConsumer(new ActiveMQQueue("Consumer.w.VirtualTopic." + stage.own(".>")));
        stage.send(new ActiveMQTopic("VirtualTopic." + stage.own(".x")), "x1");
        stage.send(new ActiveMQTopic("VirtualTopic." + stage.own(".y")), "y1");
        java.util.Set<String> seen = new java.util.TreeSet<>();
        for (int index = 0; index < 2; index++) {
            Message message = all.receive(index == 0 ? Stage.LONG_MS : 2000);
            seen.add(message == null ? "nothing" : Stage.body(message));
        }
        stage.say("all: %s", seen);
        stage.nothing("and no more", all);
    }

    private static void transaction(Stage stage) throws Exception {
        MessageConsumer a = consumer(stage, "a");
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        session.createProducer(topic(stage)).send(session.createTextMessage("m1"));
        session.rollback();
        session.createProducer(topic(stage)).send(session.createTextMessage("m2"));
        stage.nothing("before", a);
        session.commit();
        stage.receive("a", a, 1);
    }
}
