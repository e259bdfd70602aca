package interop;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import javax.jms.Destination;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.advisory.AdvisorySupport;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.ActiveMQTopic;
import org.apache.activemq.command.ConnectionInfo;
import org.apache.activemq.command.ConsumerInfo;
import org.apache.activemq.command.DataStructure;
import org.apache.activemq.command.DestinationInfo;
import org.apache.activemq.command.ProducerInfo;
import org.apache.activemq.command.RemoveInfo;

/** What the broker tells on the topics below {@code ActiveMQ.Advisory}. */
final class Advisories implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("consumers of a queue", stage -> consumers(stage, stage.queue()));
        cases.accept("consumers of a topic", stage -> consumers(stage, stage.topic()));
        cases.accept("producers of a queue", stage -> producers(stage, stage.queue()));
        cases.accept("producers of a topic", stage -> producers(stage, stage.topic()));
        cases.accept("consumers that were there before", Advisories::replayed);
        cases.accept("connections", Advisories::connections);
        cases.accept("queues and topics", Advisories::destinations);
        cases.accept("temporary destinations", Advisories::temporary);
        cases.accept("temporary destinations that were there before", Advisories::temporaryReplayed);
        cases.accept("no consumer of a topic", stage -> noConsumer(stage, stage.topic(), true));
        cases.accept("no consumer of a topic, not advised", stage -> noConsumer(stage, stage.topic(), false));
        cases.accept("no consumer of a queue", stage -> noConsumer(stage, stage.queue(".advised"), true));
        cases.accept("expired in a queue", Advisories::expired);
        cases.accept("dead letter", Advisories::dead);
        cases.accept("dead letter that expired", Advisories::expiredDead);
        cases.accept("delivered and consumed", Advisories::delivered);
        cases.accept("nobody else is told of advisory consumers", Advisories::quiet);
        cases.accept("send to an advisory topic", stage -> {
            Session session = stage.connect().createSession(false, 1);
            ActiveMQTopic topic = new ActiveMQTopic("ActiveMQ.Advisory.Consumer.Queue." + stage.own(""));
            MessageConsumer consumer = session.createConsumer(topic);
            if (stage.attempt("send", () -> session.createProducer(topic).send(session.createTextMessage("m1")))) {
                stage.receive("seen", consumer, 1);
            } else {
                stage.nothing("seen", consumer);
            }
        });
    }

    static MessageConsumer watch(Stage stage, ActiveMQTopic topic) throws Exception {
        return stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(topic);
    }

    /** What was there before, the watching connection among it. */
    private static void skip(MessageConsumer watching) throws Exception {
        while (watching.receive(Stage.SHORT_MS) != null) {
            continue;
        }
    }

    static void tell(Stage stage, String label, MessageConsumer watching) throws Exception {
        Message message = watching.receive(5_000);
        if (message == null) {
            stage.say("%s: nothing", label);
            return;
        }
        ActiveMQMessage advisory = (ActiveMQMessage) message;
        Map<String, String> properties = new TreeMap<>();
        for (Map.Entry<String, Object> entry : advisory.getProperties().entrySet()) {
            String value = String.valueOf(entry.getValue());
            // Whose broker and which machine is not the point.
            boolean own = entry.getKey().startsWith("originBroker") || entry.getKey().equals("orignalMessageId")
                    || entry.getKey().startsWith("usage");
            properties.put(entry.getKey(), own ? entry.getValue().getClass().getSimpleName()
                    : entry.getValue().getClass().getSimpleName() + " " + value);
        }
        stage.say("%s: on %s", label, temporaryless(String.valueOf(advisory.getJMSDestination())));
        stage.say("  type %s, persistent %s, priority %d, expires %s, kind %d", advisory.getJMSType(),
                advisory.isPersistent(), advisory.getJMSPriority(), advisory.getJMSExpiration() > 0,
                advisory.getDataStructureType());
        stage.say("  properties %s", properties);
        stage.say("  about %s", about(advisory.getDataStructure()));
    }

    private static String temporaryless(String name) {
        return name.replaceAll("ID:\\S+", "ID:*");
    }

    private static String about(DataStructure structure) {
        if (structure instanceof ConsumerInfo) {
            ConsumerInfo info = (ConsumerInfo) structure;
            return "ConsumerInfo of " + info.getDestination() + " prefetch " + info.getPrefetchSize() + " selector "
                    + info.getSelector() + " exclusive " + info.isExclusive() + " priority " + info.getPriority()
                    + " clientId " + (info.getClientId() != null) + " name " + info.getSubscriptionName();
        }
        if (structure instanceof ProducerInfo) {
            return "ProducerInfo of " + ((ProducerInfo) structure).getDestination();
        }
        if (structure instanceof ConnectionInfo) {
            ConnectionInfo info = (ConnectionInfo) structure;
            return "ConnectionInfo of " + info.getClientId().replaceAll("ID:.*", "ID:*") + " user "
                    + info.getUserName() + " password " + info.getPassword() + " ip " + (info.getClientIp() != null)
                    + " manageable " + info.isManageable();
        }
        if (structure instanceof RemoveInfo) {
            return "RemoveInfo of a " + ((RemoveInfo) structure).getObjectId().getClass().getSimpleName();
        }
        if (structure instanceof DestinationInfo) {
            DestinationInfo info = (DestinationInfo) structure;
            return "DestinationInfo " + (info.isAddOperation() ? "adds " : "removes ")
                    + temporaryless(String.valueOf(info.getDestination())) + " of a connection "
                    + (info.getConnectionId() != null);
        }
        if (structure instanceof ActiveMQMessage) {
            ActiveMQMessage message = (ActiveMQMessage) structure;
            return message.getClass().getSimpleName() + " with content " + (message.getContent() != null) + " to "
                    + message.getDestination();
        }
        return structure == null ? "nothing" : structure.getClass().getSimpleName();
    }

    private static void consumers(Stage stage, Destination destination) throws Exception {
        MessageConsumer watching = watch(stage, AdvisorySupport.getConsumerAdvisoryTopic(destination));
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(destination, "a = 1");
        tell(stage, "comes", watching);
        consumer.close();
        tell(stage, "goes", watching);
    }

    private static void producers(Stage stage, Destination destination) throws Exception {
        MessageConsumer watching = watch(stage, AdvisorySupport.getProducerAdvisoryTopic(destination));
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(destination);
        tell(stage, "comes", watching);
        producer.close();
        tell(stage, "goes", watching);
        session.createProducer(null).send(destination, session.createTextMessage("m1"));
        stage.say("a producer without destination: %s", watching.receive(Stage.SHORT_MS) == null ? "nothing" : "told");
    }

    private static void replayed(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createConsumer(stage.queue());
        session.createProducer(stage.queue());
        tell(stage, "consumer", watch(stage, AdvisorySupport.getConsumerAdvisoryTopic((Destination) stage.queue())));
        tell(stage, "producer", watch(stage, AdvisorySupport.getProducerAdvisoryTopic((Destination) stage.queue())));
    }

    private static void connections(Stage stage) throws Exception {
        MessageConsumer watching = watch(stage, AdvisorySupport.getConnectionAdvisoryTopic());
        skip(watching);
        ActiveMQConnection connection = stage.connectAs("interop.a-client");
        tell(stage, "comes", watching);
        connection.close();
        tell(stage, "goes", watching);
    }

    private static void destinations(Stage stage) throws Exception {
        MessageConsumer queues = watch(stage, new ActiveMQTopic("ActiveMQ.Advisory.Queue"));
        MessageConsumer topics = watch(stage, new ActiveMQTopic("ActiveMQ.Advisory.Topic"));
        skip(queues);
        skip(topics);
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        tell(stage, "queue made", queues);
        MessageConsumer consumer = session.createConsumer(stage.topic());
        // Others may be made for what is watched; ours is what counts.
        String name = "topic://" + stage.own("");
        Message found = topics.receive(Stage.LONG_MS);
        while (found != null && !((DestinationInfo) ((ActiveMQMessage) found).getDataStructure())
                .getDestination().toString().equals(name)) {
            found = topics.receive(Stage.LONG_MS);
        }
        stage.say("topic made: %s", found != null);
        consumer.close();
        connection.destroyDestination((ActiveMQDestination) stage.queue());
        tell(stage, "queue gone", queues);
    }

    private static void temporary(Stage stage) throws Exception {
        MessageConsumer watching = watch(stage, AdvisorySupport.TEMP_DESTINATION_COMPOSITE_ADVISORY_TOPIC);
        skip(watching);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        javax.jms.TemporaryQueue queue = session.createTemporaryQueue();
        tell(stage, "queue made", watching);
        queue.delete();
        tell(stage, "queue gone", watching);
        session.createTemporaryTopic();
        tell(stage, "topic made", watching);
    }

    private static void temporaryReplayed(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createTemporaryQueue();
        MessageConsumer watching = watch(stage, AdvisorySupport.TEMP_DESTINATION_COMPOSITE_ADVISORY_TOPIC);
        tell(stage, "told late", watching);
    }

    private static void noConsumer(Stage stage, Destination destination, boolean advised) throws Exception {
        Destination there = destination instanceof javax.jms.Queue || !advised
                ? destination : new ActiveMQTopic(stage.own(".advised"));
        ActiveMQTopic topic = there instanceof javax.jms.Queue
                ? AdvisorySupport.getNoQueueConsumersAdvisoryTopic(there)
                : AdvisorySupport.getNoTopicConsumersAdvisoryTopic(there);
        MessageConsumer watching = watch(stage, topic);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(there);
        producer.send(session.createTextMessage("m1"));
        stage.nothing("persistent", watching);
        producer.setDeliveryMode(javax.jms.DeliveryMode.NON_PERSISTENT);
        producer.send(session.createTextMessage("m2"));
        if (advised) {
            tell(stage, "no consumer", watching);
        } else {
            stage.nothing("no consumer", watching);
        }
    }

    private static void expired(Stage stage) throws Exception {
        MessageConsumer watching =
                watch(stage, AdvisorySupport.getExpiredMessageTopic((Destination) stage.queue()));
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"), 2, 4, 50);
        tell(stage, "expired", watching);
        stage.drain("left", stage.queue());
        Redelivery.dead(stage, "ActiveMQ.DLQ");
    }

    private static void expiredDead(Stage stage) throws Exception {
        MessageConsumer watching =
                watch(stage, AdvisorySupport.getMessageDLQdAdvisoryTopic((ActiveMQDestination) stage.queue()));
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"), 2, 4, 50);
        tell(stage, "dead letter", watching);
        stage.nothing("another one", watching);
        Redelivery.dead(stage, "ActiveMQ.DLQ");
    }

    private static void dead(Stage stage) throws Exception {
        MessageConsumer watching =
                watch(stage, AdvisorySupport.getMessageDLQdAdvisoryTopic((ActiveMQDestination) stage.queue()));
        stage.send(stage.queue(), 1);
        ActiveMQConnection connection = stage.connect("jms.redeliveryPolicy.maximumRedeliveries=0");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        session.rollback();
        tell(stage, "dead letter", watching);
        connection.close();
        stage.drain("dead", new org.apache.activemq.command.ActiveMQQueue("ActiveMQ.DLQ"));
    }

    private static void delivered(Stage stage) throws Exception {
        ActiveMQDestination queue = (ActiveMQDestination) stage.queue(".advised");
        MessageConsumer handed = watch(stage, AdvisorySupport.getMessageDeliveredAdvisoryTopic((Destination) queue));
        MessageConsumer consumed = watch(stage, AdvisorySupport.getMessageConsumedAdvisoryTopic((Destination) queue));
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        stage.send(queue, 1);
        stage.receive("received", consumer, 1);
        tell(stage, "delivered", handed);
        tell(stage, "consumed", consumed);
    }

    private static void quiet(Stage stage) throws Exception {
        MessageConsumer all = watch(stage, new ActiveMQTopic("ActiveMQ.Advisory.Consumer.Topic.ActiveMQ.>"));
        watch(stage, AdvisorySupport.getConsumerAdvisoryTopic((Destination) stage.queue()));
        stage.nothing("told", all);
    }
}
