import type { SlackAdapter } from '@chat-adapter/slack';
import { type Event, TroupeError, type TroupeClient } from '@troupe/client';
import {
  Actions,
  type Adapter,
  Button,
  Card,
  CardText,
  Chat,
  type Message,
  type StateAdapter,
  type Thread,
} from 'chat';

type Place = Pick<Thread, 'id' | 'post'>;
interface RoomOptions {
  troupe: TroupeClient;
  slack: SlackAdapter;
  /** Keeps how far each conversation was told. A new process goes on from there. */
  state: StateAdapter;
  /** Ends the following of conversations. */
  signal?: AbortSignal;
  onError?: (error: unknown) => void;
}
/** A request for approval, or a question, and the conversation that it is in. */
interface Waiting {
  conversation: string;
  id: string;
  argsHash?: string;
}

/** Slack refuses longer texts. */
const MAX_TEXT = 12_000;

/** A room of Slack: a thread is a conversation, each agent speaks under its own name, and approvals are buttons. */
export function openRoom({ troupe, slack, state, signal, onError = console.error }: RoomOptions) {
  // Without the cast, its types need a project without exactOptionalPropertyTypes.
  const adapters = { slack: slack as Adapter };
  const chat = new Chat({ userName: 'troupe', adapters, state, concurrency: 'concurrent' });
  const followed = new Set<string>();

  /** Chat SDK posts under the name of the app only; the client of Slack takes a name per message. */
  async function say({ id }: Place, name: string, text: string): Promise<void> {
    const { channel, threadTs } = slack.decodeThreadId(id);
    for (let at = 0; at < text.length; at += MAX_TEXT) {
      const markdown_text = text.slice(at, at + MAX_TEXT);
      await slack.webClient.chat.postMessage({ channel, thread_ts: threadTs, username: name, markdown_text });
    }
  }

  async function follow(thread: Place, conversation: string): Promise<void> {
    if (followed.has(conversation)) return;
    followed.add(conversation);
    try {
      const after = (await state.get<number>(`told:${conversation}`)) ?? 0;
      for (const task of await troupe.tasks(conversation, { open: true }))
        if (task.thread !== undefined) begin(thread, task.thread);
      for await (const frame of troupe.follow(conversation, { after, signal })) {
        if (frame.type !== 'event') continue;
        await tell(thread, frame.event);
        await state.set(`told:${conversation}`, frame.event.seq);
      }
    } finally {
      followed.delete(conversation);
    }
  }
  const begin = (thread: Place, conversation: string) => void follow(thread, conversation).catch(onError);

  async function tell(thread: Place, { conversation, kind, author, body }: Event): Promise<void> {
    // Of the threads of tasks only what waits for people is told.
    const isOwn = conversation === thread.id;
    if (kind === 'delegation.opened' && body.thread !== conversation) begin(thread, body.thread);
    if (kind === 'question') {
      await state.set(`asked:${thread.id}`, { conversation, id: body.question } satisfies Waiting);
      await say(thread, author.name, [body.text, ...(body.choices ?? [])].join('\n- '));
    }
    if (kind === 'question.answered') await state.delete(`asked:${thread.id}`);
    if (kind === 'approval.requested') {
      const { request: id, tool, args, argsHash } = body;
      const value = JSON.stringify({ conversation, id, argsHash } satisfies Waiting);
      const buttons = Actions([
        Button({ id: 'approve', label: 'Approve', style: 'primary', value }),
        Button({ id: 'refuse', label: 'Refuse', style: 'danger', value }),
      ]);
      const call = CardText(`\`${tool} ${args}\``);
      const card = await thread.post(Card({ title: `${author.name} asks`, children: [call, buttons] }));
      await state.set(`card:${id}`, card.id);
    }
    if (kind === 'approval.decided') {
      const card = await state.get<string>(`card:${body.request}`);
      if (card !== null) await slack.editMessage(thread.id, card, `${body.outcome} by ${author.name}`);
    }
    if (!isOwn || author.kind !== 'agent') return;
    if (kind === 'message' || kind === 'step') await say(thread, author.name, body.content);
    if (kind === 'turn.failed') await say(thread, author.name, `I failed: ${body.message}`);
  }

  /** In the text `@billing` names an agent; without one the message is routed. An open question is answered. */
  async function hear(thread: Place, { id, author: from, text }: Message): Promise<void> {
    const author = personOf(from);
    const asked = await state.get<Waiting>(`asked:${thread.id}`);
    if (asked) await troupe.answer(asked.conversation, asked, text, { author });
    else {
      const { agents } = await troupe.api.request('GET /api/agents');
      const named = new Set(text.match(/@[\w-]{1,64}/g)?.map((name) => name.slice(1).toLowerCase()));
      const to = agents.map((agent) => agent.id).filter((agent) => named.has(agent.toLowerCase()));
      // Ids with a colon are Troupe's own.
      const message = { id: `${thread.id}.${id}`.replaceAll(':', '.'), author, content: text };
      await troupe.send(thread.id, to.length > 0 ? { ...message, to } : message);
    }
    begin(thread, thread.id);
  }

  chat.onNewMention(async (thread, message) => {
    await thread.subscribe();
    await hear(thread, message);
  });
  chat.onSubscribedMessage(hear);
  chat.onAction(['approve', 'refuse'], async ({ actionId, value = '', user, thread }) => {
    const { conversation, ...task } = JSON.parse(value) as Waiting;
    if (thread) begin(thread, thread.id);
    try {
      const decision = { approved: actionId === 'approve' };
      await troupe.decide(conversation, task, decision, { author: personOf(user) });
    } catch (error) {
      if (!(error instanceof TroupeError)) throw error;
      await thread?.postEphemeral(user, error.message, { fallbackToDM: false });
    }
  });
  return chat;
}

function personOf({ userId, fullName }: Message['author']) {
  return { kind: 'user', id: userId, name: fullName } as const;
}
