package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
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
    static final String[] LOOSE = {"wireFormat.tightEncodingEnabled=false", "wireFormat.cacheEnabled=false"};
    private static final String[] TIGHT = {};
    /** So that the start of a name names one case. */
    static final String END = ".";

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (String[] options : new String[][] {LOOSE, TIGHT}) {
            String kind = options == LOOSE ? "" : "-tight";
            cases.accept("connect" + kind + END, stage -> open(stage, options).close());
            cases.accept("auto" + kind + END, stage -> acknowledged(stage, options, Acknowledgement.Mode.AUTO));
            cases.accept("transacted" + kind + END, stage -> acknowledged(stage, options, Acknowledgement.Mode.TRANSACTED));
        }
        cases.accept("client" + END, stage -> acknowledged(stage, LOOSE, Acknowledgement.Mode.CLIENT));
        cases.accept("dups-ok" + END, stage -> acknowledged(stage, LOOSE, Acknowledgement.Mode.DUPS_OK));
        cases.accept("individual" + END, stage -> acknowledged(stage, LOOSE, Acknowledgement.Mode.INDIVIDUAL));
        cases.accept("optimised" + END, stage -> acknowledged(
                stage, new String[] {LOOSE[0], LOOSE[1], "jms.optimizeAcknowledge=true",
                    "jms.optimizeAcknowledgeTimeOut=600000"}, Acknowledgement.Mode.AUTO));
        cases.accept("rollback" + END, Recording::rollback);
        cases.accept("poison" + END, Recording::poison);
        cases.accept("pull" + END, Recording::pull);
        cases.accept("browse" + END, Recording::browse);
        cases.accept("durable" + END, Recording::durable);
        cases.accept("temporary" + END, Recording::temporary);
        cases.accept("topic" + END, Recording::topic);
        cases.accept("xa" + END, Recording::xa);
        cases.accept("errors" + END, Recording::errors);
        new AcknowledgementRecordings().list(cases);
        new DispatchRecordings().list(cases);
    }

    private static ActiveMQConnection open(Stage stage, String... options) throws JMSException {
        return stage.connectAs("recorder", options);
    }

    private static void acknowledged(Stage stage, String[] options, Acknowledgement.Mode mode) throws JMSException {
        String[] all = java.util.Arrays.copyOf(options, options.length + 1);
        all[options.length] = "jms.prefetchPolicy.all=4";
        Connection connection = open(stage, all);
        Session session = mode.open(connection);
        for (int number = 1; number <= 6; number++) {
            session.createProducer(stage.queue()).send(session.createTextMessage("m" + number));
        }
        if (mode == Acknowledgement.Mode.TRANSACTED) {
            session.commit();
        }
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int index = 1; index <= 6; index++) {
            Message message = consumer.receive(Stage.LONG_MS);
            mode.after(index, session, message);
        }
        consumer.close();
        connection.close();
    }

    private static void rollback(Stage stage) throws JMSException {
        Connection connection = open(stage, LOOSE[0], LOOSE[1], "jms.redeliveryPolicy.initialRedeliveryDelay=0");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        consumer.receive(Stage.LONG_MS);
        session.rollback();
        consumer.receive(Stage.LONG_MS);
        session.commit();
        connection.close();
    }

    private static void poison(Stage stage) throws JMSException {
        Connection connection = open(stage, LOOSE[0], LOOSE[1], "jms.redeliveryPolicy.maximumRedeliveries=0");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        session.commit();
        session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        session.rollback();
        connection.close();
    }

    private static void pull(Stage stage) throws JMSException {
        Connection connection = open(stage, LOOSE[0], LOOSE[1], "jms.prefetchPolicy.all=0");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        MessageConsumer consumer = session.createConsumer(stage.queue());
        consumer.receive();
        consumer.receiveNoWait();
        consumer.receive(50);
        connection.close();
    }

    private static void browse(Stage stage) throws JMSException {
        Connection connection = open(stage, LOOSE);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        stage.browse("browsed", session.createBrowser(stage.queue()));
        connection.close();
    }

    private static void durable(Stage stage) throws JMSException {
        Connection connection = open(stage, LOOSE);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        session.createDurableSubscriber(stage.topic(), "s").close();
        session.createProducer(stage.topic()).send(session.createTextMessage("m1"));
        MessageConsumer consumer = session.createDurableSubscriber(stage.topic(), "s", "a IS NULL", true);
        consumer.close();
        session.unsubscribe("s");
        connection.close();
    }

    private static void temporary(Stage stage) throws JMSException {
        Connection connection = open(stage, LOOSE);
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
        Connection connection = open(stage, LOOSE);
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
        ActiveMQXAConnectionFactory factory =
                new ActiveMQXAConnectionFactory(Stage.USER, Stage.PASSWORD, stage.url(LOOSE));
        ActiveMQXAConnection connection = (ActiveMQXAConnection) factory.createXAConnection();
        connection.setClientID("recorder");
        connection.start();
        XASession session = connection.createXASession();
        XAResource resource = session.getXAResource();
        for (boolean onePhase : new boolean[] {true, false}) {
            Xid xid = new XaTransactions.Branch(onePhase ? "one" : "two");
            resource.start(xid, XAResource.TMNOFLAGS);
            session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
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
        ActiveMQConnection connection = open(stage, LOOSE);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.attempt("unsubscribe", () -> {
            session.unsubscribe("none");
            return null;
        });
        connection.close();
    }
}
