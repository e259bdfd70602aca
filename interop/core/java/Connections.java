package interop;

import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.ConnectionMetaData;
import javax.jms.Session;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ClientSessionFactory;

/** Connecting, logging in, and the client ids that only one connection has. */
final class Connections implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("versions", Connections::versions);
        cases.accept("wrong password", stage -> login(stage, Scene.USER, "wrong"));
        cases.accept("unknown user", stage -> login(stage, "nobody", Scene.PASSWORD));
        cases.accept("no user", stage -> login(stage, null, null));
        cases.accept("each session logs in", Connections::eachSession);
        cases.accept("many sessions", Connections::manySessions);
        cases.accept("metadata of a session", Connections::metadata);
        cases.accept("a client id twice", Connections::clientIdTwice);
        cases.accept("a client id of the URL", Connections::clientIdOfUrl);
        cases.accept("a client id after a lost connection", Connections::clientIdLost);
        cases.accept("closed in the middle", Connections::closedInTheMiddle);
    }

    private static void versions(Stage stage) throws Exception {
        stage.say("server %d", stage.core().getVersion());
        ConnectionMetaData about = stage.connect().getMetaData();
        stage.say("JMS %s, %s", about.getJMSVersion(), about.getJMSProviderName());
    }

    private static void login(Stage stage, String user, String password) throws Exception {
        stage.attempt("connect", () -> stage.closed(Stage.factory(stage.url()).createConnection(user, password)));
        stage.attempt("core session", () -> stage.factoryOfSessions()
                .createSession(user, password, false, true, true, false, 0));
    }

    private static void eachSession(Stage stage) throws Exception {
        ClientSessionFactory sessions = stage.factoryOfSessions();
        for (String password : new String[] {Scene.PASSWORD, "wrong", Scene.PASSWORD}) {
            stage.attempt("login with " + (password.equals("wrong") ? "another password" : "its password"),
                    () -> sessions.createSession(Scene.USER, password, false, true, true, false, 0));
        }
    }

    private static void manySessions(Stage stage) throws Exception {
        Connection connection = stage.connect();
        Session last = null;
        for (int count = 0; count < 50; count++) {
            last = connection.createSession(count % 2 == 0, Session.AUTO_ACKNOWLEDGE);
        }
        last.createProducer(stage.queue()).send(last.createTextMessage("by the last"));
        stage.drain("left", stage.queue());
    }

    private static void metadata(Stage stage) throws Exception {
        ClientSession session = stage.core();
        stage.attempt("metadata", () -> session.addMetaData("color", "red"));
        stage.attempt("the same again", () -> session.addMetaData("color", "blue"));
        stage.attempt("unique", () -> session.addUniqueMetaData("key", stage.own("")));
        stage.attempt("unique of another session", () -> stage.core().addUniqueMetaData("key", stage.own("")));
        session.close();
        stage.attempt("unique of a closed session", () -> stage.core().addUniqueMetaData("key", stage.own("")));
    }

    private static void clientIdTwice(Stage stage) throws Exception {
        Connection first = stage.connectAs(stage.own(""));
        stage.attempt("while it is open", () -> stage.connectAs(stage.own("")));
        stage.attempt("another one", () -> stage.connectAs(stage.own(".other")));
        first.close();
        stage.attempt("when it is closed", () -> stage.connectAs(stage.own("")));
    }

    private static void clientIdOfUrl(Stage stage) throws Exception {
        stage.say("has %s", stage.connect("clientID=" + stage.own("")).getClientID().equals(stage.own("")));
        stage.attempt("again", () -> stage.connect("clientID=" + stage.own("")));
    }

    private static void clientIdLost(Stage stage) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        stage.started(stage.own(""), Stage.url(cut.port()));
        cut.cut();
        stage.gone(stage.own(""));
        stage.attempt("then", () -> stage.connectAs(stage.own("")));
    }

    private static void closedInTheMiddle(Stage stage) throws Exception {
        Connection connection = stage.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        session.createProducer(stage.queue(".out")).send(session.createTextMessage("m1"));
        stage.send(stage.queue(".in"), 2);
        stage.receive("received", session.createConsumer(stage.queue(".in")), 1);
        connection.close();
        stage.attempt("commit", session::commit);
        stage.drain("in", stage.queue(".in"));
        stage.drain("out", stage.queue(".out"));
    }
}
