package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.QueueRequestor;
import javax.jms.QueueSession;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TemporaryTopic;
import javax.jms.TextMessage;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.jms.client.ActiveMQConnection;

/** Temporary destinations: answers, who may use them, and when they end. */
final class Temporary implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("request and reply", Temporary::reply);
        cases.accept("requestor", Temporary::requestor);
        cases.accept("topic", Temporary::topic);
        cases.accept("deleted", Temporary::deleted);
        cases.accept("deleted while it is consumed", Temporary::deletedInUse);
        cases.accept("ends with its connection, not its session", Temporary::ends);
        cases.accept("ends with a lost connection", Temporary::lost);
        cases.accept("consumer of another connection", Temporary::foreign);
        cases.accept("reply to what is gone", Temporary::replyToGone);
    }

    private static void answer(Stage stage, Session session, Message asked, String text) throws Exception {
        Message answer = session.createTextMessage(text);
        answer.setJMSCorrelationID(asked.getJMSCorrelationID());
        stage.attempt("answer", () -> session.createProducer(null).send(asked.getJMSReplyTo(), answer));
    }

    private static void reply(Stage stage) throws Exception {
        Session client = stage.auto();
        TemporaryQueue own = client.createTemporaryQueue();
        TextMessage question = client.createTextMessage("question");
        question.setJMSReplyTo(own);
        question.setJMSCorrelationID("seven");
        client.createProducer(stage.queue()).send(question);
        Session server = stage.auto();
        Message asked = server.createConsumer(stage.queue()).receive(Scene.LONG_MS);
        answer(stage, server, asked, "answer");
        Message got = client.createConsumer(own).receive(Scene.LONG_MS);
        stage.say("%s, correlation %s, to its queue: %s", Stage.show(got), got.getJMSCorrelationID(),
                own.getQueueName().equals(((Queue) got.getJMSDestination()).getQueueName()));
    }

    private static void requestor(Stage stage) throws Exception {
        Session server = stage.auto();
        server.createConsumer(stage.queue()).setMessageListener(asked -> {
            try {
                Message answer = server.createTextMessage("answer to " + Stage.body(asked));
                server.createProducer(null).send(asked.getJMSReplyTo(), answer);
            } catch (JMSException error) {
                stage.say("%s", stage.describe(error));
            }
        });
        QueueSession client = ((ActiveMQConnection) stage.connect()).createQueueSession(false, Session.AUTO_ACKNOWLEDGE);
        QueueRequestor requestor = new QueueRequestor(client, stage.queue());
        for (int number = 1; number <= 2; number++) {
            stage.say("%s", Stage.show(requestor.request(client.createTextMessage("q" + number))));
        }
        requestor.close();
    }

    private static void topic(Stage stage) throws Exception {
        Session session = stage.auto();
        TemporaryTopic topic = session.createTemporaryTopic();
        MessageConsumer one = session.createConsumer(topic);
        MessageConsumer two = session.createConsumer(topic);
        stage.send(topic, "m1");
        stage.rest("one", one);
        stage.rest("two", two);
        one.close();
        two.close();
        stage.attempt("delete", topic::delete);
        stage.attempt("consume", () -> session.createConsumer(topic));
    }

    private static void deleted(Stage stage) throws Exception {
        Session session = stage.auto();
        TemporaryQueue queue = session.createTemporaryQueue();
        stage.send(queue, "m1");
        stage.attempt("delete with a message", queue::delete);
        stage.attempt("delete again", queue::delete);
        stage.attempt("consume", () -> session.createConsumer(queue));
        stage.attempt("send", () -> session.createProducer(queue).send(session.createTextMessage("m2")));
    }

    private static void deletedInUse(Stage stage) throws Exception {
        Session session = stage.auto();
        TemporaryQueue queue = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(queue);
        stage.attempt("delete", queue::delete);
        stage.send(queue, "m1");
        stage.receive("got", consumer, 1);
        consumer.close();
        stage.attempt("delete then", queue::delete);
    }

    private static void ends(Stage stage) throws Exception {
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        TemporaryQueue queue = session.createTemporaryQueue();
        session.close();
        Session other = stage.auto();
        stage.attempt("browse after the session", () -> other.createBrowser(other.createQueue(queue.getQueueName())));
        connection.close();
        stage.say("there: %s", exists(stage, queue));
    }

    private static boolean exists(Stage stage, Queue queue) throws Exception {
        return stage.core().queueQuery(
                new SimpleString(queue.getQueueName())).isExists();
    }

    private static void lost(Stage stage) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        Session session = stage.started(stage.own(""), Stage.url(cut.port()))
                .createSession(false, Session.AUTO_ACKNOWLEDGE);
        TemporaryQueue queue = session.createTemporaryQueue();
        stage.say("there: %s", exists(stage, queue));
        cut.cut();
        stage.gone(stage.own(""));
        Scene.until(() -> !exists(stage, queue));
        stage.say("then: %s", exists(stage, queue));
    }

    private static void foreign(Stage stage) throws Exception {
        TemporaryQueue queue = stage.auto().createTemporaryQueue();
        Session other = stage.auto();
        stage.attempt("by JMS", () -> other.createConsumer(queue));
        stage.attempt("by its name", () -> other.createConsumer(other.createQueue(queue.getQueueName())));
    }

    private static void replyToGone(Stage stage) throws Exception {
        Connection connection = stage.connect();
        Session client = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Message question = client.createTextMessage("question");
        question.setJMSReplyTo(client.createTemporaryQueue());
        client.createProducer(stage.queue()).send(question);
        connection.close();
        Session server = stage.auto();
        Message asked = server.createConsumer(stage.queue()).receive(Scene.LONG_MS);
        answer(stage, server, asked, "too late");
        stage.say("made again: %s", exists(stage, (Queue) asked.getJMSReplyTo()));
    }
}
