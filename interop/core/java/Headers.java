package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.function.BiConsumer;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.artemis.api.jms.ActiveMQJMSClient;

/** What is said of a message beside its body, by the sender and by the broker. */
final class Headers implements Program {
    /** Longer than a busy machine takes to ask whether a message is there already. */
    private static final int DELAY_MS = 1_500;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("of a plain message", Headers::plain);
        cases.accept("set by the sender", Headers::set);
        cases.accept("correlation id in bytes", Headers::correlationBytes);
        cases.accept("reply to", Headers::replyTo);
        cases.accept("priorities and modes", Headers::modes);
        cases.accept("neither id nor time", Headers::disabled);
        cases.accept("groups", Headers::groups);
        cases.accept("delivery delay", Headers::delay);
        cases.accept("of an expired message", Headers::expired);
        cases.accept("of a dead letter", Headers::dead);
        cases.accept("sent on as it came", Headers::sentOn);
    }

    private interface Sender {
        void send(Session session, MessageProducer producer, Message message) throws JMSException;
    }

    private static Message through(Stage stage, Sender sender) throws JMSException {
        Session session = stage.auto();
        sender.send(session, session.createProducer(stage.queue()), session.createTextMessage("text"));
        return stage.next(stage.queue());
    }

    private static void plain(Stage stage) throws Exception {
        Message[] sent = new Message[1];
        Message message = through(stage, (session, producer, made) -> {
            producer.send(made);
            sent[0] = made;
        });
        stage.say("to the queue: %s", stage.queue().equals(message.getJMSDestination()));
        stage.say("mode %d priority %d expires %d redelivered %s", message.getJMSDeliveryMode(),
                message.getJMSPriority(), message.getJMSExpiration(), message.getJMSRedelivered());
        stage.say("same id: %s, same time: %s", sent[0].getJMSMessageID().equals(message.getJMSMessageID()),
                sent[0].getJMSTimestamp() == message.getJMSTimestamp());
        stage.say("correlation %s type %s reply to %s", message.getJMSCorrelationID(), message.getJMSType(),
                message.getJMSReplyTo());
        stage.say("delivery time %d", message.getJMSDeliveryTime());
        sayProperties(stage, message);
    }

    /** Names of all properties, and the values of those that no two runs have different. */
    private static void sayProperties(Stage stage, Message message) throws JMSException {
        List<String> names = new ArrayList<>();
        for (Enumeration<?> all = message.getPropertyNames(); all.hasMoreElements(); ) {
            names.add((String) all.nextElement());
        }
        Collections.sort(names);
        for (String name : names) {
            Object value = message.getObjectProperty(name);
            boolean varies = name.endsWith("_MESSAGE_ID") || name.endsWith("_EXPIRY") || name.endsWith("_SCHED_DELIVERY");
            stage.say("%s: %s %s", name, value.getClass().getSimpleName(), varies ? "of this run" : value);
        }
    }

    private static void set(Stage stage) throws Exception {
        Message message = through(stage, (session, producer, made) -> {
            made.setJMSCorrelationID("an id");
            made.setJMSType("a type");
            producer.setTimeToLive(100_000);
            producer.send(made);
        });
        stage.say("correlation %s type %s", message.getJMSCorrelationID(), message.getJMSType());
        stage.say("lives for %d", message.getJMSExpiration() - message.getJMSTimestamp());
        sayProperties(stage, message);
    }

    private static void correlationBytes(Stage stage) throws Exception {
        Message message = through(stage, (session, producer, made) -> {
            made.setJMSCorrelationIDAsBytes(new byte[] {1, -2, 3});
            producer.send(made);
        });
        stage.say("%s", Arrays.toString(message.getJMSCorrelationIDAsBytes()));
    }

    private static void replyTo(Stage stage) throws Exception {
        Session owner = stage.auto();
        Destination[] all = {stage.queue(".q"), ActiveMQJMSClient.createTopic(stage.own(".t")),
            owner.createTemporaryQueue(), owner.createTemporaryTopic()};
        for (Destination one : all) {
            Message message = through(stage, (session, producer, made) -> {
                made.setJMSReplyTo(one);
                producer.send(made);
            });
            stage.say("%s, same: %s", message.getJMSReplyTo().getClass().getSimpleName(),
                    one.toString().equals(message.getJMSReplyTo().toString()));
        }
    }

    private static void modes(Stage stage) throws Exception {
        for (int priority : new int[] {0, 1, 4, 8, 9}) {
            for (int mode : new int[] {DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT}) {
                Message message = through(stage, (session, producer, made) -> producer.send(made, mode, priority, 0));
                stage.say("mode %d priority %d", message.getJMSDeliveryMode(), message.getJMSPriority());
            }
        }
    }

    private static void disabled(Stage stage) throws Exception {
        Message message = through(stage, (session, producer, made) -> {
            producer.setDisableMessageID(true);
            producer.setDisableMessageTimestamp(true);
            producer.send(made);
        });
        stage.say("id %s time %d", message.getJMSMessageID(), message.getJMSTimestamp());
    }

    private static void groups(Stage stage) throws Exception {
        sayProperties(stage, through(stage, (session, producer, made) -> {
            made.setStringProperty("JMSXGroupID", "group");
            made.setIntProperty("JMSXGroupSeq", 7);
            producer.send(made);
        }));
    }

    private static void delay(Stage stage) throws Exception {
        Session session = stage.auto();
        MessageConsumer consumer = stage.auto().createConsumer(stage.queue());
        MessageProducer producer = session.createProducer(stage.queue());
        producer.setDeliveryDelay(DELAY_MS);
        long before = System.currentTimeMillis();
        producer.send(session.createTextMessage("late"));
        stage.rest("at once", consumer);
        Message message = consumer.receive(Scene.LONG_MS);
        stage.say("%s, not before its time: %s", Stage.show(message), System.currentTimeMillis() - before >= DELAY_MS);
        stage.say("said so: %s", Math.abs(message.getJMSDeliveryTime() - message.getJMSTimestamp() - DELAY_MS) < 50);
        sayProperties(stage, message);
    }

    private static void expired(Stage stage) throws Exception {
        Session session = stage.auto();
        MessageProducer producer = session.createProducer(stage.queue());
        producer.setTimeToLive(1);
        Message made = session.createTextMessage("old");
        made.setStringProperty("own", "kept");
        producer.send(made);
        fromOthers(stage, "ExpiryQueue");
        stage.drain("left", stage.queue());
    }

    /** Says what comes from a queue for dead letters or expired messages. */
    private static void fromOthers(Stage stage, String queue) throws JMSException {
        Session session = stage.auto();
        MessageConsumer consumer =
                session.createConsumer(session.createQueue(queue), "_AMQ_ORIG_ADDRESS = '" + stage.own("") + "'");
        Message message = consumer.receive(Scene.LONG_MS);
        stage.say("%s, expires %d, to %s", Stage.show(message), message.getJMSExpiration(),
                message.getJMSDestination());
        sayProperties(stage, message);
    }

    private static void dead(Stage stage) throws Exception {
        stage.send(stage.queue(), "poison", "good");
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int attempt = 0; attempt < 4; attempt++) {
            stage.receive("attempt", consumer, 1);
            session.rollback();
        }
        fromOthers(stage, "DLQ");
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void sentOn(Stage stage) throws Exception {
        Message message = through(stage, (session, producer, made) -> {
            made.setStringProperty("own", "kept");
            made.setJMSReplyTo(stage.queue(".reply"));
            producer.send(made);
        });
        Session session = stage.auto();
        session.createProducer(stage.queue(".next")).send(message);
        Message next = stage.next(stage.queue(".next"));
        stage.say("%s to %s, reply to %s", Stage.show(next), stage.queue(".next").equals(next.getJMSDestination()),
                next.getJMSReplyTo());
        sayProperties(stage, next);
    }
}
