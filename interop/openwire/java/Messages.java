package interop;

import java.util.Arrays;
import java.util.Enumeration;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ActiveMQMessage;

/** Bodies, headers and properties of every type, priorities and expiry. */
final class Messages implements Program {
    private interface Making {
        Message make(Session session) throws Exception;
    }

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (boolean compressed : new boolean[] {false, true}) {
            String more = compressed ? " compressed" : "";
            body(cases, "text" + more, compressed, session ->
                    session.createTextMessage("Grüße, 世界 \uD83D\uDE00 \0 end"));
            body(cases, "long text" + more, compressed, session -> session.createTextMessage("text ".repeat(50_000)));
            body(cases, "null text" + more, compressed, session -> session.createTextMessage());
            body(cases, "empty text" + more, compressed, session -> session.createTextMessage(""));
            body(cases, "bytes" + more, compressed, Messages::bytes);
            body(cases, "empty bytes" + more, compressed, Session::createBytesMessage);
            body(cases, "map" + more, compressed, Messages::map);
            body(cases, "empty map" + more, compressed, Session::createMapMessage);
            body(cases, "stream" + more, compressed, Messages::stream);
            body(cases, "empty stream" + more, compressed, Session::createStreamMessage);
            body(cases, "object" + more, compressed, session ->
                    session.createObjectMessage(new java.util.ArrayList<>(Arrays.asList("a", 1, 2.5))));
            body(cases, "null object" + more, compressed, Session::createObjectMessage);
            body(cases, "no body" + more, compressed, Session::createMessage);
        }
        cases.accept("properties", Messages::properties);
        cases.accept("long property", Messages::longProperty);
        cases.accept("headers", Messages::headers);
        cases.accept("headers of a reply to a topic", Messages::replyTo);
        cases.accept("JMSX properties", Messages::jmsx);
        cases.accept("message id stays", Messages::ids);
        cases.accept("a received message sent on", Messages::forwarded);
        cases.accept("priorities", stage -> priorities(stage, stage.queue()));
        cases.accept("priorities kept apart", stage -> priorities(stage, stage.queue(".priorities")));
        cases.accept("expired before it is received", stage -> expires(stage, DeliveryMode.PERSISTENT));
        cases.accept("expired, not persistent", stage -> expires(stage, DeliveryMode.NON_PERSISTENT));
        cases.accept("expires at the client", Messages::expiresAtClient);
        cases.accept("not expired", Messages::notExpired);
        cases.accept("read only after receive", Messages::readOnly);
        cases.accept("asynchronous send", Messages::asynchronous);
        cases.accept("producer window", Messages::window);
        cases.accept("thousand properties", Messages::thousand);
        cases.accept("user id", Messages::userId);
    }

    private static void body(BiConsumer<String, Body> cases, String name, boolean compressed, Making making) {
        cases.accept(name, stage -> {
            Connection connection = stage.connect("jms.useCompression=" + compressed, "jms.nestedMapAndListEnabled=true");
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            session.createProducer(stage.queue()).send(making.make(session));
            Message message = session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
            stage.say("%s, compressed %s", message.getClass().getSimpleName(), ((ActiveMQMessage) message).isCompressed());
            stage.say("%s", content(message));
        });
    }

    private static Message bytes(Session session) throws Exception {
        BytesMessage message = session.createBytesMessage();
        message.writeInt(42);
        message.writeUTF("utf");
        message.writeDouble(2.5);
        message.writeBytes(new byte[10_000]);
        return message;
    }

    private static Message map(Session session) throws Exception {
        MapMessage message = session.createMapMessage();
        message.setBoolean("boolean", true);
        message.setByte("byte", (byte) -1);
        message.setShort("short", (short) -300);
        message.setChar("char", 'ß');
        message.setInt("int", 70_000);
        message.setLong("long", Long.MIN_VALUE);
        message.setFloat("float", 1.5f);
        message.setDouble("double", Double.MAX_VALUE);
        message.setString("string", "ü");
        message.setString("null", null);
        message.setBytes("bytes", new byte[] {0, -1});
        message.setObject("list", Arrays.asList("a", 1));
        return message;
    }

    private static Message stream(Session session) throws Exception {
        StreamMessage message = session.createStreamMessage();
        message.writeBoolean(true);
        message.writeByte((byte) 7);
        message.writeShort((short) 300);
        message.writeChar('x');
        message.writeInt(70_000);
        message.writeLong(1L << 40);
        message.writeFloat(1.5f);
        message.writeDouble(2.5);
        message.writeString("text");
        message.writeString("long ".repeat(20_000));
        message.writeObject(null);
        message.writeBytes(new byte[] {1, 2, 3});
        return message;
    }

    private static String content(Message message) throws Exception {
        if (message instanceof TextMessage) {
            String text = ((TextMessage) message).getText();
            return text == null ? "null" : text.length() + " characters, hash " + text.hashCode();
        }
        if (message instanceof BytesMessage) {
            BytesMessage bytes = (BytesMessage) message;
            byte[] read = new byte[(int) bytes.getBodyLength()];
            bytes.readBytes(read);
            return read.length + " bytes, hash " + Arrays.hashCode(read);
        }
        if (message instanceof MapMessage) {
            Map<String, String> found = new TreeMap<>();
            for (Enumeration<?> names = ((MapMessage) message).getMapNames(); names.hasMoreElements(); ) {
                String name = (String) names.nextElement();
                found.put(name, typed(((MapMessage) message).getObject(name)));
            }
            return found.toString();
        }
        if (message instanceof StreamMessage) {
            StringBuilder found = new StringBuilder();
            try {
                while (true) {
                    String one = typed(((StreamMessage) message).readObject());
                    found.append(one.length() > 100 ? one.length() + " characters" : one).append("; ");
                }
            } catch (javax.jms.MessageEOFException end) {
                return found + "end";
            }
        }
        if (message instanceof ObjectMessage) {
            return typed(((ObjectMessage) message).getObject());
        }
        return "no body";
    }

    private static String typed(Object value) {
        if (value == null) {
            return "null";
        }
        String text = value instanceof byte[] ? Arrays.toString((byte[]) value) : value.toString();
        return value.getClass().getSimpleName() + " " + text;
    }

    private static void properties(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        Message message = session.createTextMessage("m1");
        message.setBooleanProperty("boolean", true);
        message.setByteProperty("byte", (byte) 1);
        message.setShortProperty("short", (short) 2);
        message.setIntProperty("int", 3);
        message.setLongProperty("long", 4);
        message.setFloatProperty("float", 1.5f);
        message.setDoubleProperty("double", 2.5);
        message.setStringProperty("string", "ü");
        message.setStringProperty("empty", "");
        message.setObjectProperty("null", null);
        message.setStringProperty("with space and-dash", "x");
        session.createProducer(stage.queue()).send(message);
        Message got = session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        for (Object name : new TreeSet<>(java.util.Collections.list(got.getPropertyNames()))) {
            stage.say("%s = %s", name, typed(got.getObjectProperty((String) name)));
        }
    }

    private static void longProperty(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        Message message = session.createTextMessage("m1");
        message.setStringProperty("long", "x".repeat(40_000));
        stage.attempt("send", () -> session.createProducer(stage.queue()).send(message));
        Message got = session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        stage.say("length %d", got.getStringProperty("long").length());
    }

    private static void headers(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        Message message = session.createTextMessage("m1");
        message.setJMSCorrelationID("correlation");
        message.setJMSType("type");
        message.setJMSReplyTo(stage.queue(".reply"));
        MessageProducer producer = session.createProducer(stage.queue());
        long before = System.currentTimeMillis();
        producer.send(message, DeliveryMode.NON_PERSISTENT, 7, 600_000);
        Message got = session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        stage.say("destination %s, reply to %s", got.getJMSDestination(), got.getJMSReplyTo());
        stage.say("correlation %s, type %s", got.getJMSCorrelationID(), got.getJMSType());
        stage.say("mode %d, priority %d", got.getJMSDeliveryMode(), got.getJMSPriority());
        stage.say("timestamp %s, expiration %s", got.getJMSTimestamp() >= before,
                got.getJMSExpiration() - got.getJMSTimestamp());
        stage.say("id is the sent one %s", got.getJMSMessageID().equals(message.getJMSMessageID()));
        ActiveMQMessage inner = (ActiveMQMessage) got;
        stage.say("broker path %s, in time %s, out time %s, arrival %s", inner.getBrokerPath() == null ? "none"
                : inner.getBrokerPath().length, inner.getBrokerInTime() > 0, inner.getBrokerOutTime() > 0,
                inner.getArrival() > 0);
        stage.say("broker sequence %s", inner.getMessageId().getBrokerSequenceId() > 0);
    }

    private static void replyTo(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        for (Destination reply : new Destination[] {stage.topic(), session.createTemporaryTopic(), null}) {
            Message message = session.createTextMessage("m1");
            message.setJMSReplyTo(reply);
            session.createProducer(stage.queue()).send(message);
        }
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int index = 0; index < 3; index++) {
            Destination reply = consumer.receive(Stage.LONG_MS).getJMSReplyTo();
            stage.say("reply to %s", reply == null ? "none" : reply.getClass().getSimpleName());
        }
    }

    private static void jmsx(Stage stage) throws Exception {
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.say("known: %s", new TreeSet<>(java.util.Collections.list(connection.getMetaData().getJMSXPropertyNames())));
        Message message = session.createTextMessage("m1");
        message.setStringProperty("JMSXGroupID", "g");
        message.setIntProperty("JMSXGroupSeq", 3);
        session.createProducer(stage.queue()).send(message);
        Message got = session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        for (String name : new String[] {
            "JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount", "JMSXUserID", "JMSXProducerTXID", "JMSXMimeType",
            "JMSXGroupFirstForConsumer", "JMSXRcvTimestamp",
        }) {
            stage.say("%s = %s", name, typed(got.getObjectProperty(name)));
        }
    }

    private static void ids(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(stage.queue());
        Message one = session.createTextMessage("m1");
        Message two = session.createTextMessage("m2");
        producer.send(one);
        producer.send(two);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        ActiveMQMessage first = (ActiveMQMessage) consumer.receive(Stage.LONG_MS);
        ActiveMQMessage second = (ActiveMQMessage) consumer.receive(Stage.LONG_MS);
        stage.say("%s %s", first.getJMSMessageID().equals(one.getJMSMessageID()),
                second.getJMSMessageID().equals(two.getJMSMessageID()));
        stage.say("sequences grow: %s", second.getMessageId().getBrokerSequenceId()
                > first.getMessageId().getBrokerSequenceId());
        producer.setDisableMessageID(true);
        producer.setDisableMessageTimestamp(true);
        producer.send(session.createTextMessage("m3"));
        Message third = consumer.receive(Stage.LONG_MS);
        stage.say("id %s, timestamp %d", third.getJMSMessageID() != null, third.getJMSTimestamp());
    }

    private static void forwarded(Stage stage) throws Exception {
        stage.send(stage.queue(".in"), 1);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        Message message = session.createConsumer(stage.queue(".in")).receive(Stage.LONG_MS);
        String id = message.getJMSMessageID();
        session.createProducer(stage.queue(".out")).send(message);
        Message got = session.createConsumer(stage.queue(".out")).receive(Stage.LONG_MS);
        stage.say("%s from %s, a new id: %s", Stage.show(got), got.getJMSDestination(), !got.getJMSMessageID().equals(id));
    }

    private static void priorities(Stage stage, Destination destination) throws Exception {
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(destination);
        for (int priority : new int[] {0, 4, 9, 5, 4, 9, 1}) {
            producer.send(session.createTextMessage("p" + priority), DeliveryMode.PERSISTENT, priority, 0);
        }
        session.commit();
        stage.drain("order", destination);
    }

    private static void expires(Stage stage, int mode) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(stage.queue());
        producer.send(session.createTextMessage("m1"), mode, 4, 1);
        producer.send(session.createTextMessage("m2"), mode, 4, 0);
        // Expired for certain; the broker looks every half a second.
        Thread.sleep(1_500);
        stage.drain("left", stage.queue());
        Redelivery.dead(stage, "ActiveMQ.DLQ");
    }

    private static void expiresAtClient(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        MessageProducer producer = session.createProducer(stage.queue());
        producer.send(session.createTextMessage("m1"), DeliveryMode.PERSISTENT, 4, 200);
        producer.send(session.createTextMessage("m2"), DeliveryMode.PERSISTENT, 4, 0);
        Thread.sleep(700);
        stage.receive("received", consumer, 1);
        stage.nothing("no more", consumer);
        session.close();
        Redelivery.dead(stage, "ActiveMQ.DLQ");
    }

    private static void notExpired(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(stage.queue());
        producer.setTimeToLive(600_000);
        producer.send(session.createTextMessage("m1"));
        stage.drain("left", stage.queue());
    }

    private static void readOnly(Stage stage) throws Exception {
        stage.send(stage.queue(), 1);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        TextMessage message = (TextMessage) session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        stage.attempt("text", () -> message.setText("other"));
        stage.attempt("property", () -> message.setIntProperty("a", 1));
    }

    private static void asynchronous(Stage stage) throws Exception {
        ActiveMQConnection connection = stage.connect("jms.useAsyncSend=true");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int number = 1; number <= 5; number++) {
            producer.send(session.createTextMessage("m" + number));
        }
        Stage.barrier(connection);
        stage.drain("left", stage.queue());
    }

    private static void window(Stage stage) throws Exception {
        ActiveMQConnection connection = stage.connect("jms.producerWindowSize=4096", "jms.useAsyncSend=true");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int number = 1; number <= 50; number++) {
            producer.send(session.createTextMessage("m" + number + " " + "x".repeat(1000)));
        }
        Stage.barrier(connection);
        connection.close();
        MessageConsumer consumer = stage.connect("jms.prefetchPolicy.all=0").createSession(false, 1)
                .createConsumer(stage.queue());
        int received = 0;
        // Classic may still be storing what was sent without waiting.
        while (received < 50 && consumer.receive(Stage.LONG_MS) != null) {
            received++;
        }
        stage.say("sent past the window: %d, left: %d", received, Stage.rest(consumer).size());
    }

    private static void thousand(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        Message message = session.createTextMessage("m1");
        for (int index = 0; index < 900; index++) {
            message.setIntProperty("p" + index, index);
        }
        session.createProducer(stage.queue()).send(message);
        Message got = session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        int right = 0;
        for (int index = 0; index < 900; index++) {
            right += got.getIntProperty("p" + index) == index ? 1 : 0;
        }
        stage.say("right: %d", right);
    }

    private static void userId(Stage stage) throws Exception {
        stage.send(stage.queue(), 1);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        Message message = session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        stage.say("user id %s", message.getStringProperty("JMSXUserID"));
    }
}
