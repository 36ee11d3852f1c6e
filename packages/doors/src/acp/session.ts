import { methods, RequestError } from '@agentclientprotocol/sdk';
import type { StdioParts } from '../stdio-parts.ts';
import {
  type Chat,
  type Event,
  type Failure,
  TroupeError,
  addressed,
  isAbout,
  nobodyAnswers,
  openChat,
  type NewAttachment,
} from '../troupe.ts';
import { sessionUpdates } from './session-updates.ts';
import { type Approval, askPermission, type Editor } from './ask-permission.ts';

/** The mode in which the conversation's routing names who answers. */
export const ROUTED = 'troupe';
/** "Internal error" of JSON-RPC. */
const INTERNAL = -32_603;

type StopReason = 'end_turn' | 'cancelled';
type Parts = Pick<StdioParts, 'troupe' | 'author'>;
type Telling = { chat: Chat; updatesOf: ReturnType<typeof sessionUpdates>; editor: Editor };

/**
 * The session of one editor in one conversation. Owns whom its prompts are for and which turns run.
 *  1. A prompt ends when nobody works on it any more. What it asks of people it asks the editor first.
 *  2. A cancelled prompt asks nothing more.
 */
export class Session {
  readonly #parts: Parts;
  readonly #conversation: string;
  /** The turns that run, by id. */
  readonly #turns = new Set<string>();
  #mode = ROUTED;
  #isCancelled = false;

  constructor(parts: Parts, conversation: string) {
    this.#parts = parts;
    this.#conversation = conversation;
  }

  /** Id of the agent that is addressed, or `troupe`. */
  get mode(): string {
    return this.#mode;
  }

  /** Throws `agent_unknown`. */
  setMode(mode: string): void {
    if (mode !== ROUTED && !this.#parts.troupe.agents.some(({ id }) => id === mode))
      throw new TroupeError('agent_unknown', `there is no agent "${mode}"`, { agent: mode });
    this.#mode = mode;
  }

  /** Says something and tells the editor what comes of it. */
  async prompt(blocks: readonly ContentBlock[], editor: Editor): Promise<{ stopReason: StopReason }> {
    this.#isCancelled = false;
    const { troupe } = this.#parts;
    const session = this.#conversation;
    const nameOf = (agent: string) => troupe.agents.find(({ id }) => id === agent)?.name ?? agent;
    const telling = {
      chat: openChat(troupe, session),
      updatesOf: sessionUpdates(session, nameOf),
      editor,
    };
    const first = await this.#say(blocks);
    const asked = await this.#tell(first.seq, telling);
    // The list grows: what an approved call leads to may need approval, too.
    for (const approval of asked) {
      const decided = this.#isCancelled
        ? null
        : await askPermission(this.#parts, approval, { session, editor });
      if (!decided) continue;
      const isHere = decided.conversation === session && decided.to.length > 0;
      asked.push(...(await this.#tell(isHere ? decided.seq : first.seq, telling)));
    }
    return { stopReason: this.#isCancelled ? 'cancelled' : 'end_turn' };
  }

  /** Stops the turns that answer the prompt. */
  async cancel(): Promise<void> {
    this.#isCancelled = true;
    const { troupe, author } = this.#parts;
    await Promise.allSettled(
      [...this.#turns].map((turn) => troupe.command({ command: 'abort', turn }, author)),
    );
  }

  /** A prompt answers the question that is open, if there is one. */
  async #say(blocks: readonly ContentBlock[]): Promise<Event> {
    const { troupe, author } = this.#parts;
    const conversation = this.#conversation;
    const { content, attachments } = promptContent(blocks);
    const question = attachments.length === 0 ? await this.#openQuestion() : null;
    if (question !== null)
      return troupe.command({ command: 'answer', conversation, question, content }, author);
    const to = this.#mode === ROUTED ? undefined : [this.#mode];
    const message = addressed({ author, content, attachments, channel: 'acp', to }, troupe.agents);
    const { event } = await troupe.send(conversation, message);
    if (event.to.length === 0) throw nobodyAnswers();
    return event;
  }

  async #openQuestion(): Promise<string | null> {
    try {
      const { tasks } = await this.#parts.troupe.tasks(this.#conversation, { open: true });
      return tasks.find((task) => task.kind === 'question' && this.#mayAnswer(task.by))?.id ?? null;
    } catch (error) {
      if (error instanceof TroupeError && error.code === 'conversation_unknown') return null;
      throw error;
    }
  }

  #mayAnswer(by: readonly string[] = []): boolean {
    return by.length === 0 || by.includes(this.#parts.author.id);
  }

  /** Tells the editor what comes of an event. Returns the calls that wait for people. */
  async #tell(seq: number, { chat, updatesOf, editor }: Telling): Promise<Approval[]> {
    const asked: Approval[] = [];
    const going = chat.follow(seq, editor.signal);
    let next = await going.next();
    for (; !next.done; next = await going.next()) {
      const change = next.value;
      for (const update of updatesOf(change))
        await editor.client.notify(methods.client.session.update, { sessionId: this.#conversation, update });
      if (change.type === 'event') this.#note(change.event, asked);
    }
    const { outcome, failures } = next.value;
    const [failure] = failures;
    if (failure && outcome === 'failed' && !this.#isCancelled) throw failed(failure);
    return asked;
  }

  #note(event: Event, asked: Approval[]): void {
    if (event.kind === 'turn.started' && event.turn) this.#turns.add(event.turn);
    if (event.turn && isAbout(event, 'turnEnd')) this.#turns.delete(event.turn);
    if (event.kind === 'approval.requested' && this.#mayAnswer(event.body.by)) asked.push(event);
  }
}

function failed({ agent, code, message }: Failure): RequestError {
  return new RequestError(INTERNAL, `@${agent}: ${message}`, { code });
}

/** A piece of what the user of an editor says, as the protocol has it. */
export type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'image'; mimeType: string; data: string }
  | { type: 'audio'; mimeType: string; data: string }
  | { type: 'resource_link'; uri: string; name: string }
  | { type: 'resource'; resource: { uri: string; mimeType?: string | null; text?: string; blob?: string } };

/** A prompt as a message: files that the editor sends are attachments, and links are named in the text. */
export function promptContent(blocks: readonly ContentBlock[]): {
  content: string;
  attachments: NewAttachment[];
} {
  const texts: string[] = [];
  const attachments: NewAttachment[] = [];
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
        texts.push(block.text);
        break;
      case 'resource_link':
        texts.push(`[${block.name}](${block.uri})`);
        break;
      case 'image':
      case 'audio':
        attachments.push({ mediaType: block.mimeType, data: block.data });
        break;
      case 'resource': {
        const { uri, mimeType, text, blob } = block.resource;
        const name = uri.slice(uri.lastIndexOf('/') + 1).slice(0, 200) || 'file';
        const data = blob ?? new TextEncoder().encode(text ?? '');
        attachments.push({
          name,
          mediaType: mimeType ?? (blob === undefined ? 'text/plain' : 'application/octet-stream'),
          data,
        });
      }
    }
  }
  return { content: texts.join('\n'), attachments };
}
