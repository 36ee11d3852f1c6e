import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { END, MessagesDeltaValue, START, StateGraph, StateSchema } from '@langchain/langgraph';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';
import { REPLY } from '../fake-model.mjs';
import { messagesOf } from '../texts.mjs';

const State = new StateSchema({ messages: MessagesDeltaValue });

/** A graph of one node with LangGraph's saver on SQLite, and messages in a delta channel. */
export function open(dir) {
  const sent = { calls: 0, chars: 0, messages: 0 };
  const checkpointer = SqliteSaver.fromConnString(`${dir}/graph.db`);
  const answer = ({ messages }) => {
    sent.calls += 1;
    sent.messages = messages.length + 1;
    sent.chars += 'Take notes.'.length;
    for (const { content } of messages) sent.chars += content.length;
    return { messages: [new AIMessage(REPLY)] };
  };
  const graphs = new Map();
  const graphOf = (side) => {
    const graph =
      graphs.get(side) ??
      new StateGraph(State)
        .addNode(side, answer)
        .addEdge(START, side)
        .addEdge(side, END)
        .compile({ checkpointer });
    graphs.set(side, graph);
    return graph;
  };
  const at = (conversation) => ({ configurable: { thread_id: conversation } });
  return {
    sent,
    async turn(conversation, agent, text) {
      await graphOf(agent).invoke({ messages: [new HumanMessage(text)] }, at(conversation));
    },
    async fill(conversation, count) {
      const messages = messagesOf(count).map(({ role, content }) =>
        role === 'user' ? new HumanMessage(content) : new AIMessage(content),
      );
      await graphOf('left').updateState(at(conversation), { messages }, 'left');
    },
    close: async () => checkpointer.db.close(),
  };
}
