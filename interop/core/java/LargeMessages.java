package interop;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Random;
import java.util.function.BiConsumer;
import java.util.zip.CRC32;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;

/** Messages that go in parts: of sizes around the borders, as streams, compressed, cut off. */
final class LargeMessages implements Program {
    private static final int CHUNK = 102_400;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (int size : new int[] {CHUNK - 200, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK, 1_000_000}) {
            cases.accept("bytes " + size, stage -> bytes(stage, size));
            cases.accept("stream of " + size, stage -> stream(stage, size));
        }
        cases.accept("text", LargeMessages::text);
        cases.accept("compressed", stage -> compressed(stage, new Random(7)));
        cases.accept("compressed to little", stage -> compressed(stage, null));
        cases.accept("small ones as large", LargeMessages::smallAsLarge);
        cases.accept("not persistent", LargeMessages::notPersistent);
        cases.accept("properties and headers", LargeMessages::headers);
        for (String window : new String[] {"0", "1000", "-1"}) {
            cases.accept("window " + window, stage -> window(stage, window));
        }
        cases.accept("rolled back", LargeMessages::rolledBack);
        cases.accept("browsed", LargeMessages::browsed);
        cases.accept("to a topic", LargeMessages::toTopic);
        cases.accept("body left unread", LargeMessages::unread);
        cases.accept("cut off while it is sent", LargeMessages::cutOff);
        cases.accept("to a dead letter", LargeMessages::dead);
    }

    private static byte[] made(int size, Random random) {
        byte[] bytes = new byte[size];
        if (random != null) {
            random.nextBytes(bytes);
        }
        return bytes;
    }

    private static long sum(byte[] bytes, int length) {
        CRC32 sum = new CRC32();
        sum.update(bytes, 0, length);
        return sum.getValue();
    }

    private static BytesMessage message(Session session, byte[] bytes) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(bytes);
        return message;
    }

    private static void sayBytes(Stage stage, Message message, byte[] sent) throws JMSException {
        if (message == null) {
            stage.say("nothing");
            return;
        }
        BytesMessage got = (BytesMessage) message;
        byte[] bytes = new byte[sent.length + 1];
        int length = got.readBytes(bytes);
        stage.say("%d bytes #%d, read %d, same: %s", got.getBodyLength(), got.getIntProperty("JMSXDeliveryCount"), length,
                sum(sent, sent.length) == sum(bytes, Math.max(length, 0)));
    }

    private static void bytes(Stage stage, int size) throws Exception {
        byte[] sent = made(size, new Random(size));
        Session session = stage.auto();
        MessageProducer producer = session.createProducer(stage.queue());
        producer.send(message(session, sent));
        producer.send(session.createTextMessage("after it"));
        MessageConsumer consumer = stage.auto().createConsumer(stage.queue());
        sayBytes(stage, consumer.receive(Scene.LONG_MS), sent);
        stage.rest("then", consumer);
    }

    /** Random bytes, made while they are read. */
    private static class Source extends InputStream {
        private final Random random = new Random(9);
        private final CRC32 sum = new CRC32();
        private final int size;
        private int given;

        Source(int size) {
            this.size = size;
        }

        int given() {
            return given;
        }

        @Override
        public int read() throws IOException {
            if (given == size) {
                return -1;
            }
            given++;
            int next = random.nextInt(256);
            sum.update(next);
            return next;
        }
    }

    private static void stream(Stage stage, int size) throws Exception {
        Source source = new Source(size);
        Session session = stage.auto();
        BytesMessage message = session.createBytesMessage();
        message.setObjectProperty("JMS_AMQ_InputStream", source);
        session.createProducer(stage.queue()).send(message);
        Message got = stage.auto().createConsumer(stage.queue()).receive(Scene.LONG_MS);
        ByteArrayOutputStream saved = new ByteArrayOutputStream();
        got.setObjectProperty("JMS_AMQ_SaveStream", saved);
        stage.say("%d bytes saved, same: %s", saved.size(), sum(saved.toByteArray(), saved.size()) == source.sum.getValue());
        stage.say("_AMQ_LARGE_SIZE %s", got.getObjectProperty("_AMQ_LARGE_SIZE"));
    }

    private static void text(Stage stage) throws Exception {
        String text = "\u20AC and \uD83D\uDE00 ".repeat(30_000);
        Session session = stage.auto();
        session.createProducer(stage.queue()).send(session.createTextMessage(text));
        Message got = stage.auto().createConsumer(stage.queue()).receive(Scene.LONG_MS);
        stage.say("same: %s", text.equals(((TextMessage) got).getText()));
    }

    private static void compressed(Stage stage, Random random) throws Exception {
        byte[] sent = made(500_000, random);
        Session session = stage.auto("compressLargeMessage=true");
        session.createProducer(stage.queue()).send(message(session, sent));
        Message got = stage.auto().createConsumer(stage.queue()).receive(Scene.LONG_MS);
        sayBytes(stage, got, sent);
        stage.say("_AMQ_LARGE_SIZE %s", got.getObjectProperty("_AMQ_LARGE_SIZE"));
    }

    private static void smallAsLarge(Stage stage) throws Exception {
        byte[] sent = made(5_000, new Random(1));
        Session session = stage.auto("minLargeMessageSize=1000");
        MessageProducer producer = session.createProducer(stage.queue());
        for (int count = 0; count < 3; count++) {
            producer.send(message(session, sent));
        }
        MessageConsumer consumer = stage.auto("minLargeMessageSize=1000").createConsumer(stage.queue());
        for (int count = 0; count < 3; count++) {
            sayBytes(stage, consumer.receive(Scene.LONG_MS), sent);
        }
    }

    private static void notPersistent(Stage stage) throws Exception {
        byte[] sent = made(300_000, new Random(2));
        Session session = stage.auto();
        MessageProducer producer = session.createProducer(stage.queue());
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(message(session, sent));
        Message got = stage.auto().createConsumer(stage.queue()).receive(Scene.LONG_MS);
        stage.say("mode %d", got.getJMSDeliveryMode());
        sayBytes(stage, got, sent);
    }

    private static void headers(Stage stage) throws Exception {
        byte[] sent = made(300_000, new Random(3));
        Session session = stage.auto();
        Message message = message(session, sent);
        message.setStringProperty("own", "value");
        message.setJMSCorrelationID("cor");
        message.setJMSType("type");
        message.setJMSReplyTo(stage.queue(".reply"));
        session.createProducer(stage.queue()).send(message, DeliveryMode.PERSISTENT, 7, 600_000);
        Message got = stage.auto().createConsumer(stage.queue(), "own = 'value'").receive(Scene.LONG_MS);
        stage.say("%s %s %s %s priority %d", got.getStringProperty("own"), got.getJMSCorrelationID(), got.getJMSType(),
                got.getJMSReplyTo(), got.getJMSPriority());
        stage.say("lives for %d", got.getJMSExpiration() - got.getJMSTimestamp());
        sayBytes(stage, got, sent);
    }

    private static void window(Stage stage, String window) throws Exception {
        byte[] sent = made(250_000, new Random(4));
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int count = 0; count < 3; count++) {
            producer.send(message(session, sent));
            producer.send(session.createTextMessage("small"));
        }
        session.commit();
        MessageConsumer consumer = stage.auto("consumerWindowSize=" + window).createConsumer(stage.queue());
        for (int count = 0; count < 3; count++) {
            sayBytes(stage, consumer.receive(Scene.LONG_MS), sent);
            stage.receive("and", consumer, 1);
        }
        stage.rest("rest", consumer);
    }

    private static void rolledBack(Stage stage) throws Exception {
        byte[] sent = made(300_000, new Random(5));
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        MessageConsumer consumer = session.createConsumer(stage.queue());
        producer.send(message(session, sent));
        session.rollback();
        stage.rest("sent and rolled back", consumer);
        producer.send(message(session, sent));
        session.commit();
        for (int count = 0; count < 2; count++) {
            sayBytes(stage, consumer.receive(Scene.LONG_MS), sent);
            session.rollback();
        }
        sayBytes(stage, consumer.receive(Scene.LONG_MS), sent);
        session.commit();
        stage.rest("left", consumer);
    }

    private static void browsed(Stage stage) throws Exception {
        byte[] sent = made(300_000, new Random(6));
        Session session = stage.auto();
        session.createProducer(stage.queue()).send(message(session, sent));
        sayBytes(stage, (Message) session.createBrowser(stage.queue()).getEnumeration().nextElement(), sent);
        sayBytes(stage, session.createConsumer(stage.queue()).receive(Scene.LONG_MS), sent);
    }

    private static void toTopic(Stage stage) throws Exception {
        byte[] sent = made(300_000, new Random(8));
        MessageConsumer one = stage.auto().createConsumer(stage.topic());
        MessageConsumer two = stage.auto().createConsumer(stage.topic());
        Session session = stage.auto();
        session.createProducer(stage.topic()).send(message(session, sent));
        sayBytes(stage, one.receive(Scene.LONG_MS), sent);
        sayBytes(stage, two.receive(Scene.LONG_MS), sent);
    }

    private static void unread(Stage stage) throws Exception {
        Session session = stage.auto();
        MessageProducer producer = session.createProducer(stage.queue());
        producer.send(message(session, made(600_000, new Random(1))));
        producer.send(session.createTextMessage("after it"));
        Session reader = stage.auto();
        MessageConsumer consumer = reader.createConsumer(stage.queue());
        stage.say("%s", consumer.receive(Scene.LONG_MS) != null);
        stage.receive("then", consumer, 1);
        reader.close();
        stage.drain("left", stage.queue());
    }

    private static void cutOff(Stage stage) throws Exception {
        stage.auto().createConsumer(stage.queue()).close();
        Cut cut = new Cut(stage.host(), stage.port());
        Connection connection = stage.started(stage.own(""), Stage.url(cut.port()));
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        BytesMessage message = session.createBytesMessage();
        message.setObjectProperty("JMS_AMQ_InputStream", new Source(2_000_000) {
            @Override
            public int read() throws IOException {
                int next = super.read();
                if (given() == 1_000_000) {
                    cut.cut();
                }
                return next;
            }
        });
        MessageProducer producer = session.createProducer(stage.queue());
        stage.attempt("send", () -> producer.send(message));
        stage.gone(stage.own(""));
        stage.drain("left", stage.queue());
    }

    private static void dead(Stage stage) throws Exception {
        byte[] sent = made(300_000, new Random(5));
        Session session = stage.session(Session.SESSION_TRANSACTED);
        session.createProducer(stage.queue()).send(message(session, sent));
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int attempt = 0; attempt < 3; attempt++) {
            consumer.receive(Scene.LONG_MS);
            session.rollback();
        }
        Session other = stage.auto();
        sayBytes(stage, other.createConsumer(other.createQueue("DLQ"), "_AMQ_ORIG_ADDRESS = '" + stage.own("") + "'")
                .receive(Scene.LONG_MS), sent);
    }
}
