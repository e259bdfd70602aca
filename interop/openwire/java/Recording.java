package interop;

import java.util.Arrays;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.XASession;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQXAConnection;
import org.apache.activemq.ActiveMQXAConnectionFactory;

/** Short conversations, one connection each, for the recorder; what they see is not compared. */
final class Recording implements Program {
    private static final String[] LOOSE = {"wireFormat.tightEncodingEnabled=false", "wireFormat.cacheEnabled=false"};
    private static final String[] TIGHT = {};
    /** So that the start of a name names one case. */
    private static final String END = ".";
    static final String CLIENT_ID = "recorder";
    static final String AT_ONCE = "jms.redeliveryPolicy.initialRedeliveryDelay=0";
    static final String PREFETCH_4 = "jms.prefetchPolicy.all=4";
    static final String PULL = "jms.prefetchPolicy.all=0";
    static final String OPTIMISED = "jms.optimizeAcknowledge=true";
    static final String NEVER_TIMED_OUT = "jms.optimizeAcknowledgeTimeOut=600000";
    static final String POISON_AT_ONCE = "jms.redeliveryPolicy.maximumRedeliveries=0";

    @Override
    public void list(BiConsumer<String, Body> cases) {
        BiConsumer<String, Body> named = (name, body) -> cases.accept(name + END, body);
        for (String[] options : new String[][] {LOOSE, TIGHT}) {
            String kind = options == LOOSE ? "" : "-tight";
            named.accept("connect" + kind, stage -> stage.connectAs(CLIENT_ID, options).close());
            named.accept("auto" + kind, stage -> acknowledged(stage, options, Acknowledgement.Mode.AUTO));
            named.accept("transacted" + kind, stage -> acknowledged(stage, options, Acknowledgement.Mode.TRANSACTED));
        }
        named.accept("client", stage -> acknowledged(stage, LOOSE, Acknowledgement.Mode.CLIENT));
        named.accept("dups-ok", stage -> acknowledged(stage, LOOSE, Acknowledgement.Mode.DUPS_OK));
        named.accept("individual", stage -> acknowledged(stage, LOOSE, Acknowledgement.Mode.INDIVIDUAL));
        named.accept("optimised", stage -> acknowledged(
                stage, and(LOOSE, OPTIMISED, NEVER_TIMED_OUT), Acknowledgement.Mode.AUTO));
        named.accept("rollback", Recording::rollback);
        named.accept("poison", Recording::poison);
        named.accept("pull", Recording::pull);
        named.accept("browse", Recording::browse);
        named.accept("durable", Recording::durable);
        named.accept("temporary", Recording::temporary);
        named.accept("topic", Recording::topic);
        named.accept("xa", Recording::xa);
        named.accept("errors", Recording::errors);
        new AcknowledgementRecordings().list(named);
        new DispatchRecordings().list(named);
    }

    private static String[] and(String[] options, String... more) {
        String[] all = Arrays.copyOf(options, options.length + more.length);
        System.arraycopy(more, 0, all, options.length, more.length);
        return all;
    }

    /** A connection that talks loosely. */
    static ActiveMQConnection open(Stage stage, String... more) throws JMSException {
        return openAs(stage, CLIENT_ID, more);
    }

    static ActiveMQConnection openAs(Stage stage, String clientId, String... more) throws JMSException {
        return stage.connectAs(clientId, and(LOOSE, more));
    }

    static ActiveMQXAConnection openXa(Stage stage, String... more) throws JMSException {
        ActiveMQXAConnectionFactory factory =
                new ActiveMQXAConnectionFactory(Stage.USER, Stage.PASSWORD, stage.url(and(LOOSE, more)));
        ActiveMQXAConnection connection = (ActiveMQXAConnection) factory.createXAConnection();
        connection.setClientID(CLIENT_ID);
        connection.start();
        return connection;
    }

    /** A producer of its own for each message. */
    static void send(Session session, Destination destination, int first, int last) throws JMSException {
        for (int number = first; number <= last; number++) {
            session.createProducer(destination).send(session.createTextMessage("m" + number));
        }
    }

    static void receive(MessageConsumer consumer, int count) throws JMSException {
        for (int index = 0; index < count; index++) {
            if (consumer.receive(Stage.LONG_MS) == null) {
                throw new IllegalStateException("message " + (index + 1) + " does not come");
            }
        }
    }

    /** Takes six, and answers as the mode has it. */
    static void receive(MessageConsumer consumer, Acknowledgement.Mode mode, Session session) throws JMSException {
        for (int index = 1; index <= 6; index++) {
            Message message = consumer.receive(Stage.LONG_MS);
            mode.after(index, session, message);
        }
    }

    private static void acknowledged(Stage stage, String[] options, Acknowledgement.Mode mode) throws JMSException {
        Connection connection = stage.connectAs(CLIENT_ID, and(options, PREFETCH_4));
        Session session = mode.open(connection);
        send(session, stage.queue(), 1, 6);
        if (mode == Acknowledgement.Mode.TRANSACTED) {
            session.commit();
        }
        MessageConsumer consumer = session.createConsumer(stage.queue());
        receive(consumer, mode, session);
        consumer.close();
        connection.close();
    }

    private static void rollback(Stage stage) throws JMSException {
        Connection connection = open(stage, AT_ONCE);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        send(session, stage.queue(), 1, 1);
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        consumer.receive(Stage.LONG_MS);
        session.rollback();
        consumer.receive(Stage.LONG_MS);
        session.commit();
        connection.close();
    }

    private static void poison(Stage stage) throws JMSException {
        Connection connection = open(stage, POISON_AT_ONCE);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        send(session, stage.queue(), 1, 1);
        session.commit();
        session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        session.rollback();
        connection.close();
    }

    private static void pull(Stage stage) throws JMSException {
        Connection connection = open(stage, PULL);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 1);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        consumer.receive();
        consumer.receiveNoWait();
        consumer.receive(50);
        connection.close();
    }

    private static void browse(Stage stage) throws JMSException {
        Connection connection = open(stage);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 1);
        stage.browse("browsed", session.createBrowser(stage.queue()));
        connection.close();
    }

    private static void durable(Stage stage) throws JMSException {
        Connection connection = open(stage);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableSubscriber(stage.topic(), "s").close();
        session.createProducer(stage.topic()).send(session.createTextMessage("m1"));
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "s", "a IS NULL", true);
        consumer.close();
        session.unsubscribe("s");
        connection.close();
    }

    private static void temporary(Stage stage) throws JMSException {
        Connection connection = open(stage);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        javax.jms.TemporaryQueue replies = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        Message request = session.createTextMessage("m1");
        request.setJMSReplyTo(replies);
        session.createProducer(stage.queue()).send(request);
        Message got = session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        session.createProducer(got.getJMSReplyTo()).send(session.createTextMessage("re"));
        consumer.receive(Stage.LONG_MS);
        consumer.close();
        replies.delete();
        connection.close();
    }

    private static void topic(Stage stage) throws JMSException {
        Connection connection = open(stage);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.topic(), "a = 1", false);
        Message message = session.createMapMessage();
        message.setIntProperty("a", 1);
        message.setStringProperty("b", "ü");
        session.createProducer(stage.topic()).send(message);
        consumer.receive(Stage.LONG_MS);
        connection.close();
    }

    private static void xa(Stage stage) throws Exception {
        ActiveMQXAConnection connection = openXa(stage);
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        for (boolean onePhase : new boolean[] {true, false}) {
            Xid xid = new XaTransactions.Branch(onePhase ? "one" : "two");
            resource.start(xid, XAResource.TMNOFLAGS);
            send(session, stage.queue(), 1, 1);
            resource.end(xid, XAResource.TMSUCCESS);
            if (!onePhase) {
                resource.prepare(xid);
                resource.recover(XAResource.TMSTARTRSCAN);
            }
            resource.commit(xid, onePhase);
        }
        connection.close();
    }

    private static void errors(Stage stage) throws JMSException {
        ActiveMQConnection connection = open(stage);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.attempt("unsubscribe", () -> session.unsubscribe("none"));
        connection.close();
    }
}
