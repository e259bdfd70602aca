package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.Topic;
import javax.jms.TopicSubscriber;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.apache.activemq.advisory.AdvisorySupport;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;
import org.apache.activemq.command.ConsumerInfo;

/** What a destination's policy says of prefetches, and of what waits for consumers of a topic beyond theirs. */
final class PrefetchPolicy implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("queue", stage -> held(stage, stage.queue(".few"), "a=b"));
        cases.accept("queue, asks for less", stage -> held(stage, stage.queue(".few"), "jms.prefetchPolicy.all=2"));
        cases.accept("queue, asks for more", stage -> held(stage, stage.queue(".few"), "jms.prefetchPolicy.all=5"));
        cases.accept("topic", stage -> held(stage, topic(stage, ".few"), "a=b"));
        cases.accept("topic, asks for more", stage -> held(stage, topic(stage, ".few"), "jms.prefetchPolicy.all=5"));
        cases.accept("durable", stage -> durable(stage, Session.CLIENT_ACKNOWLEDGE));
        cases.accept("durable, optimized", stage -> durable(stage, Session.AUTO_ACKNOWLEDGE));
        cases.accept("browser", stage -> {
            stage.send(stage.queue(".few"), 9);
            stage.browse("browsed", stage.queue(".few"));
        });
        cases.accept("a page of a browser", stage -> {
            stage.send(stage.queue(".page"), 9);
            stage.browse("browsed", stage.queue(".page"));
            stage.browse("browsed again", stage.queue(".page"));
        });
        cases.accept("told of", PrefetchPolicy::toldOf);
        cases.accept("queue without prefetch", PrefetchPolicy::pulled);
        cases.accept("topic without prefetch", PrefetchPolicy::pulledTopic);
        cases.accept("listener without prefetch", stage -> {
            Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(stage.queue(".pulled"));
            stage.attempt("listener", () -> consumer.setMessageListener(message -> { }));
        });
        for (String suffix : new String[] {".exact", ""}) {
            String name = suffix.isEmpty() ? "with extension" : "without extension";
            cases.accept("transacted " + name, stage -> extended(stage, suffix, Session.SESSION_TRANSACTED));
            cases.accept("client " + name, stage -> extended(stage, suffix, Session.CLIENT_ACKNOWLEDGE));
        }
        cases.accept("limit", stage -> limited(stage, ".kept", 2, "m1 m2 m3 m4 m5 m6 m7 m8 m9"));
        cases.accept("limit, below it", stage -> limited(stage, ".kept", 2, "m1 m2 m3 m4"));
        cases.accept("limit, prefetch 1", stage -> limited(stage, ".kept", 1, "m1 m2 m3 m4 m5 m6 m7 m8 m9"));
        cases.accept("no limit", stage -> limited(stage, ".free", 2, "m1 m2 m3 m4 m5 m6 m7 m8 m9"));
        cases.accept("limit of nothing", stage -> limited(stage, ".none", 2, "m1 m2 m3 m4 m5"));
        cases.accept("multiple of the prefetch", stage -> limited(stage, ".rate", 2, "m1 m2 m3 m4 m5 m6 m7 m8 m9"));
        cases.accept("lowest priority goes", stage ->
                limited(stage, ".least", 1, "m1:4 m2:9 m3:1 m4:4 m5:1 m6:4 m7:5"));
        cases.accept("superseded goes", stage ->
                limited(stage, ".unique", 1, "m1 m2=a m3=b m4=a m5=c m6=d m7=b"));
        cases.accept("nothing to supersede", stage -> limited(stage, ".unique", 1, "m1 m2=a m3=b m4=c m5=d m6=e"));
        cases.accept("limit of the consumer", stage ->
                limited(stage, ".kept", "?consumer.prefetchSize=2&consumer.maximumPendingMessageLimit=1",
                        "m1 m2 m3 m4 m5 m6"));
        cases.accept("limit of a pulling consumer", PrefetchPolicy::pulledAndLimited);
        cases.accept("told of what goes", PrefetchPolicy::discarded);
    }

    private static Topic topic(Stage stage, String suffix) {
        return new ActiveMQTopic(stage.own(suffix));
    }

    private static void publish(Stage stage, Destination destination, String messages) throws Exception {
        ActiveMQConnection connection = stage.connect("jms.watchTopicAdvisories=false");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(destination);
        for (String text : messages.split(" ")) {
            String body = text.split("[:=]")[0];
            Message message = session.createTextMessage(body);
            if (text.contains("=")) {
                message.setStringProperty("symbol", text.substring(text.indexOf('=') + 1));
            }
            int priority = text.contains(":") ? Integer.parseInt(text.substring(text.indexOf(':') + 1)) : 4;
            producer.send(message, DeliveryMode.NON_PERSISTENT, priority, 0);
            // Which of two is newer is told by their time.
            Thread.sleep(3);
        }
        Stage.barrier(connection);
        connection.close();
    }

    private static void tell(Stage stage, MessageConsumer consumer, int expected) throws Exception {
        Stage.ready(consumer, expected);
        Thread.sleep(Stage.SHORT_MS);
        stage.say("in delivery: %d", ((ActiveMQMessageConsumer) consumer).getMessageSize());
    }

    private static void held(Stage stage, Destination destination, String option) throws Exception {
        boolean asks = option.startsWith("jms");
        ActiveMQConnection connection = asks ? stage.connect(option) : stage.connect();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(destination);
        publish(stage, destination, "m1 m2 m3 m4 m5 m6 m7 m8 m9");
        tell(stage, consumer, 2);
        stage.receive("received", consumer, 2);
    }

    private static void durable(Stage stage, int mode) throws Exception {
        ActiveMQConnection connection = stage.connectAs(stage.own(""));
        Session session = connection.createSession(false, mode);
        TopicSubscriber subscriber = session.createDurableSubscriber(topic(stage, ".few"), "subscription");
        publish(stage, topic(stage, ".few"), "m1 m2 m3 m4 m5 m6 m7 m8 m9");
        tell(stage, subscriber, 2);
    }

    private static void toldOf(Stage stage) throws Exception {
        ActiveMQQueue queue = new ActiveMQQueue(stage.own(".few"));
        Session watching = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer advisories = watching.createConsumer(AdvisorySupport.getConsumerAdvisoryTopic(queue));
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createConsumer(queue);
        ActiveMQMessage advisory = (ActiveMQMessage) advisories.receive(Stage.LONG_MS);
        stage.say("prefetch %d", ((ConsumerInfo) advisory.getDataStructure()).getPrefetchSize());
    }

    private static void pulled(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue(".pulled"));
        stage.send(stage.queue(".pulled"), 3);
        tell(stage, consumer, 0);
        stage.receive("received", consumer, 3);
        stage.nothing("then", consumer);
    }

    private static void pulledTopic(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(topic(stage, ".pulled"));
        publish(stage, topic(stage, ".pulled"), "m1 m2 m3");
        tell(stage, consumer, 0);
        stage.receive("received", consumer, 3);
    }

    private static void extended(Stage stage, String suffix, int mode) throws Exception {
        boolean transacted = mode == Session.SESSION_TRANSACTED;
        Session session = stage.connect("jms.prefetchPolicy.all=4").createSession(transacted, mode);
        MessageConsumer consumer = session.createConsumer(stage.queue(suffix));
        stage.send(stage.queue(suffix), 9);
        List<String> seen = new ArrayList<>();
        Message last = null;
        for (Message one = consumer.receive(2_000); one != null && seen.size() < 9; one = consumer.receive(2_000)) {
            seen.add(Stage.show(one));
            last = one;
        }
        stage.say("before the end: %s", seen);
        if (transacted) {
            session.commit();
        } else {
            last.acknowledge();
        }
        stage.say("next: %s", Stage.show(consumer.receive(2_000)));
    }

    private static void limited(Stage stage, String suffix, int prefetch, String messages) throws Exception {
        limited(stage, suffix, "?consumer.prefetchSize=" + prefetch, messages);
    }

    private static void limited(Stage stage, String suffix, String options, String messages) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(new ActiveMQTopic(stage.own(suffix) + options));
        publish(stage, topic(stage, suffix), messages);
        all(stage, "received", consumer);
        publish(stage, topic(stage, suffix), "n1 n2");
        all(stage, "afterwards", consumer);
    }

    private static void all(Stage stage, String label, MessageConsumer consumer) throws Exception {
        List<String> seen = new ArrayList<>();
        for (Message one = consumer.receive(1_000); one != null; one = consumer.receive(1_000)) {
            seen.add(Stage.show(one));
        }
        stage.say("%s: %s", label, seen);
    }

    private static void pulledAndLimited(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer =
                session.createConsumer(new ActiveMQTopic(stage.own(".kept") + "?consumer.prefetchSize=0"));
        publish(stage, topic(stage, ".kept"), "m1 m2 m3 m4 m5");
        stage.take("taken", consumer);
    }

    private static void discarded(Stage stage) throws Exception {
        Topic topic = topic(stage, ".kept");
        Session watching = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer advisories =
                watching.createConsumer(AdvisorySupport.getMessageDiscardedAdvisoryTopic((Destination) topic));
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(new ActiveMQTopic(stage.own(".kept")
                + "?consumer.prefetchSize=1"));
        publish(stage, topic, "m1 m2 m3 m4 m5 m6");
        for (int index = 0; index < 2; index++) {
            ActiveMQMessage advisory = (ActiveMQMessage) advisories.receive(Stage.LONG_MS);
            stage.say("%s discarded, of %s, by the consumer %s", advisory.getProperty("discardedCount"),
                    advisory.getProperty("orignalDestination"),
                    String.valueOf(((ActiveMQMessageConsumer) consumer).getConsumerId())
                            .equals(advisory.getProperty("consumerId")));
        }
        stage.nothing("then", advisories);
    }
}
