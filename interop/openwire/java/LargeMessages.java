package interop;

import java.util.Random;
import java.util.function.BiConsumer;
import java.util.zip.CRC32;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Session;
import javax.jms.TextMessage;

/** Bodies up to 50 MB. */
final class LargeMessages implements Program {
    private static final int MIB = 1024 * 1024;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (int size : new int[] {1, 10, 50}) {
            cases.accept(size + " MB of bytes", stage -> bytes(stage, size, false, DeliveryMode.PERSISTENT));
        }
        cases.accept("50 MB of bytes, not persistent", stage -> bytes(stage, 50, false, DeliveryMode.NON_PERSISTENT));
        cases.accept("50 MB of bytes compressed", stage -> bytes(stage, 50, true, DeliveryMode.PERSISTENT));
        cases.accept("50 MB of bytes with properties", LargeMessages::properties);
        cases.accept("50 MB of bytes in a transaction with others", LargeMessages::transaction);
        cases.accept("50 MB of bytes, five in a row", LargeMessages::row);
        cases.accept("10 million characters", LargeMessages::text);
        cases.accept("50 MB that comes back", LargeMessages::again);
    }

    private static byte[] content(int megabytes) {
        byte[] content = new byte[megabytes * MIB];
        new Random(megabytes).nextBytes(content);
        return content;
    }

    private static String sum(BytesMessage message) throws Exception {
        CRC32 sum = new CRC32();
        byte[] buffer = new byte[MIB];
        long length = 0;
        for (int count = message.readBytes(buffer); count > 0; count = message.readBytes(buffer)) {
            sum.update(buffer, 0, count);
            length += count;
        }
        return length + " bytes, sum " + Long.toHexString(sum.getValue());
    }

    private static void bytes(Stage stage, int megabytes, boolean compressed, int mode) throws Exception {
        stage.allow(120_000);
        Connection connection = stage.connect("jms.useCompression=" + compressed);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(content(megabytes));
        session.createProducer(stage.queue()).send(message, mode, 4, 0);
        message.clearBody();
        stage.say("%s", sum((BytesMessage) session.createConsumer(stage.queue()).receive(60_000)));
    }

    private static void properties(Stage stage) throws Exception {
        stage.allow(120_000);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(content(50));
        for (int number = 0; number < 100; number++) {
            message.setStringProperty("property" + number, "0123456789".repeat(100));
        }
        session.createProducer(stage.queue()).send(message);
        message.clearBody();
        BytesMessage received = (BytesMessage) session.createConsumer(stage.queue()).receive(60_000);
        int length = 0;
        for (int number = 0; number < 100; number++) {
            length += received.getStringProperty("property" + number).length();
        }
        stage.say("%s, properties of %d characters", sum(received), length);
    }

    private static void transaction(Stage stage) throws Exception {
        stage.allow(120_000);
        Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
        var producer = session.createProducer(stage.queue());
        for (int megabytes : new int[] {1, 50, 2}) {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(content(megabytes));
            producer.send(message);
        }
        session.commit();
        var consumer = session.createConsumer(stage.queue());
        for (int count = 0; count < 3; count++) {
            stage.say("%s", sum((BytesMessage) consumer.receive(60_000)));
        }
        session.commit();
    }

    private static void row(Stage stage) throws Exception {
        stage.allow(240_000);
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        var producer = session.createProducer(stage.queue());
        byte[] content = content(50);
        for (int number = 0; number < 5; number++) {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(content);
            message.setIntProperty("number", number);
            producer.send(message);
        }
        var consumer = session.createConsumer(stage.queue());
        for (int number = 0; number < 5; number++) {
            BytesMessage message = (BytesMessage) consumer.receive(60_000);
            stage.say("%d: %s", message.getIntProperty("number"), sum(message));
        }
    }

    private static void text(Stage stage) throws Exception {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createProducer(stage.queue()).send(session.createTextMessage("0123456789".repeat(1_000_000)));
        String text = ((TextMessage) session.createConsumer(stage.queue()).receive(60_000)).getText();
        stage.say("%d characters, hash %d", text.length(), text.hashCode());
    }

    private static void again(Stage stage) throws Exception {
        stage.allow(120_000);
        Connection connection = stage.connect("jms.redeliveryPolicy.initialRedeliveryDelay=0");
        connection.setExceptionListener(error -> stage.note("%s", error));
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(content(50));
        session.createProducer(stage.queue()).send(message);
        message.clearBody();
        session.commit();
        stage.say("%s", sum((BytesMessage) session.createConsumer(stage.queue()).receive(60_000)));
        connection.close();
        Connection next = stage.connect();
        BytesMessage again = (BytesMessage) next.createSession(false, Session.AUTO_ACKNOWLEDGE)
                .createConsumer(stage.queue()).receive(60_000);
        stage.say("again %s, redelivered %s", sum(again), again.getJMSRedelivered());
    }
}
