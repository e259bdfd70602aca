package interop;

import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ConsumerId;
import org.apache.activemq.command.ConsumerInfo;
import org.apache.activemq.command.SessionId;

/** Temporary destinations, and request and reply across connections. */
final class Temporary implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (boolean queue : new boolean[] {true, false}) {
            String kind = queue ? "queue" : "topic";
            cases.accept("request and reply " + kind, stage -> requestReply(stage, queue, "jms.watchTopicAdvisories=true"));
            cases.accept("request and reply " + kind + " without watching advisories", stage ->
                    requestReply(stage, queue, "jms.watchTopicAdvisories=false"));
            cases.accept("foreign consumer " + kind, stage -> foreign(stage, queue));
            cases.accept("delete while consumed " + kind, stage -> deleteWhileConsumed(stage, queue));
            cases.accept("send after delete " + kind, stage -> sendAfterDelete(stage, queue));
            cases.accept("send after the owner left " + kind, stage -> ownerLeft(stage, queue));
        }
        cases.accept("ten requesters", Temporary::tenRequesters);
        cases.accept("messages wait in a temporary queue", Temporary::waiting);
        cases.accept("redelivery in a temporary queue", Temporary::redelivered);
        cases.accept("browse a temporary queue", Temporary::browsed);
        cases.accept("dies by cut", Temporary::cut);
    }

    private static Destination create(Session session, boolean queue) throws JMSException {
        return queue ? session.createTemporaryQueue() : session.createTemporaryTopic();
    }

    private static void answer(Stage stage, String option) throws JMSException {
        Connection connection = stage.connect(option);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer replies = session.createProducer(null);
        session.createConsumer(stage.queue()).setMessageListener(request -> {
            try {
                Message reply = session.createTextMessage("re: " + Stage.body(request));
                reply.setJMSCorrelationID(request.getJMSCorrelationID());
                replies.send(request.getJMSReplyTo(), reply);
            } catch (JMSException error) {
                stage.say("answering: %s", Stage.classes(error));
            }
        });
    }

    private static void requestReply(Stage stage, boolean queue, String option) throws JMSException {
        answer(stage, option);
        Connection connection = stage.connect(option);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination replies = create(session, queue);
        MessageConsumer consumer = session.createConsumer(replies);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int number = 1; number <= 3; number++) {
            Message request = session.createTextMessage("m" + number);
            request.setJMSReplyTo(replies);
            request.setJMSCorrelationID("c" + number);
            producer.send(request);
            Message reply = consumer.receive(Stage.LONG_MS);
            stage.say("%s, correlation %s", Stage.show(reply), reply.getJMSCorrelationID());
            stage.say("reply came to %s", reply.getJMSDestination().equals(replies) ? "the temporary destination" : "?");
        }
    }

    private static void tenRequesters(Stage stage) throws Exception {
        answer(stage, "jms.prefetchPolicy.all=10");
        CountDownLatch done = new CountDownLatch(10);
        for (int requester = 0; requester < 10; requester++) {
            String name = "r" + requester;
            new Thread(() -> {
                try {
                    Connection connection = stage.connect();
                    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                    Destination replies = session.createTemporaryQueue();
                    MessageConsumer consumer = session.createConsumer(replies);
                    MessageProducer producer = session.createProducer(stage.queue());
                    for (int number = 0; number < 20; number++) {
                        Message request = session.createTextMessage(name + "." + number);
                        request.setJMSReplyTo(replies);
                        producer.send(request);
                        String reply = Stage.body(consumer.receive(Stage.LONG_MS));
                        if (!reply.equals("re: " + name + "." + number)) {
                            stage.say("%s got %s", name, reply);
                        }
                    }
                } catch (JMSException | RuntimeException error) {
                    stage.say("%s: %s", name, Stage.classes(error));
                }
                done.countDown();
            }).start();
        }
        Stage.await(done);
        stage.say("all answered");
    }

    private static void foreign(Stage stage, boolean queue) throws Exception {
        ActiveMQConnection owning = stage.connect();
        Session owner = owning.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination destination = create(owner, queue);
        ActiveMQConnection other = stage.connect();
        Stage.known(other, destination);
        Session session = other.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.attempt("consumer at the client", () -> session.createConsumer(destination));
        ConsumerInfo wanted = new ConsumerInfo(
                new ConsumerId(new SessionId(other.getConnectionInfo().getConnectionId(), 1), 77));
        wanted.setDestination(org.apache.activemq.command.ActiveMQDestination.transform(destination));
        wanted.setPrefetchSize(10);
        stage.attempt("consumer at the broker", () -> other.syncSendPacket(wanted));
        stage.attempt("send", () -> session.createProducer(destination).send(session.createTextMessage("m1")));
        stage.attempt("delete", () -> {
            other.deleteTempDestination((org.apache.activemq.command.ActiveMQTempDestination) destination);
            Stage.unknown(owning, destination);
        });
        stage.attempt("owner goes on", () -> owner.createConsumer(destination));
    }

    private static void delete(Destination destination) throws JMSException {
        if (destination instanceof TemporaryQueue) {
            ((TemporaryQueue) destination).delete();
        } else {
            ((TemporaryTopic) destination).delete();
        }
    }

    private static void deleteWhileConsumed(Stage stage, boolean queue) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination destination = create(session, queue);
        MessageConsumer consumer = session.createConsumer(destination);
        stage.attempt("delete while consumed", () -> delete(destination));
        consumer.close();
        stage.attempt("delete", () -> delete(destination));
        stage.attempt("consumer after delete", () -> session.createConsumer(destination));
    }

    private static void sendAfterDelete(Stage stage, boolean queue) throws Exception {
        Session owner = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination destination = create(owner, queue);
        ActiveMQConnection other = stage.connect();
        Stage.known(other, destination);
        Session session = other.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(destination);
        producer.send(session.createTextMessage("m1"));
        delete(destination);
        Stage.unknown(other, destination);
        stage.attempt("send", () -> producer.send(session.createTextMessage("m2")));
        stage.attempt("another producer", () -> {
            session.createProducer(null).send(destination, session.createTextMessage("m3"));
        });
    }

    private static void ownerLeft(Stage stage, boolean queue) throws Exception {
        Connection owner = stage.connect();
        Destination destination = create(owner.createSession(false, Session.AUTO_ACKNOWLEDGE), queue);
        ActiveMQConnection watching = stage.connect();
        ActiveMQConnection blind = stage.connect("jms.watchTopicAdvisories=false");
        Stage.known(watching, destination);
        owner.close();
        Stage.unknown(watching, destination);
        for (ActiveMQConnection connection : new ActiveMQConnection[] {watching, blind}) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            stage.attempt(connection == blind ? "send without advisories" : "send", () -> {
                session.createProducer(destination).send(session.createTextMessage("m1"));
            });
        }
    }

    private static void waiting(Stage stage) throws JMSException {
        Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        Destination destination = session.createTemporaryQueue();
        stage.send(destination, 3);
        stage.receive("received", session.createConsumer(destination), 3);
    }

    private static void redelivered(Stage stage) throws JMSException {
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Destination destination = session.createTemporaryQueue();
        stage.send(destination, 3);
        MessageConsumer consumer = session.createConsumer(destination);
        stage.receive("received", consumer, 2);
        consumer.close();
        stage.receive("then", session.createConsumer(destination), 3);
    }

    private static void browsed(Stage stage) throws JMSException {
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        TemporaryQueue destination = session.createTemporaryQueue();
        stage.send(destination, 2);
        stage.browse("browsed", session.createBrowser(destination));
    }

    private static void cut(Stage stage) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        ActiveMQConnection owner = stage.started(stage.own(""), Stage.url("127.0.0.1", cut.port()));
        Destination destination =
                owner.createSession(false, Session.AUTO_ACKNOWLEDGE).createTemporaryQueue();
        ActiveMQConnection other = stage.connect();
        Stage.known(other, destination);
        Session session = other.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(destination);
        producer.send(session.createTextMessage("m1"));
        cut.cut();
        stage.gone(stage.own(""));
        Stage.unknown(other, destination);
        stage.attempt("send", () -> producer.send(session.createTextMessage("m2")));
        cut.close();
    }
}
