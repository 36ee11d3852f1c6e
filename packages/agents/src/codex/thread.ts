import {
  type Clock,
  type ModelEvent,
  type ModelRequest,
  type PromptMessage,
  type ReplyLimits,
  shownImages,
  TroupeError,
} from '../troupe.ts';
import { flattenMessages } from '../flatten-messages.ts';
import type { AppServer, ThreadListener, ToolAnswer } from './app-server.ts';
import type { Sandbox } from './config.ts';
import { ThreadAnswer, type ToolCallParams, TurnsPage } from './protocol.ts';
import { Turn } from './turn.ts';

export interface ThreadOptions {
  server: AppServer;
  clock: Clock;
  sandbox: Sandbox;
  /** Codex's own tools may access files. Without this they have no file system. */
  hasShell: boolean;
  secrets: readonly string[];
  limits: ReplyLimits;
  /** Working directory of a session; it exists. */
  cwdOf(cacheKey: string): string;
}

const PAGE = 50;

/**
 * A thread in the memory of the process. It runs one turn at a time, because Codex would take a second turn as a message
 * within the first.
 */
export class Thread implements ThreadListener {
  readonly id: string;
  /** Instructions, fixed while the thread is loaded. */
  readonly system: string;
  readonly #options: ThreadOptions;
  readonly #raw: boolean;
  #turn: Turn | null = null;
  #model: string;
  /** Id of the last turn if it completed; null if unknown, or if something followed it. */
  #leaf: string | null = null;

  private constructor(options: ThreadOptions, request: ModelRequest, at: { id: string; raw: boolean }) {
    this.id = at.id;
    this.#raw = at.raw;
    this.#options = options;
    this.#model = request.model;
    this.system = flattenMessages(request.messages).system;
    options.server.listen(at.id, this);
  }

  static async start(
    options: ThreadOptions,
    request: ModelRequest,
    { ephemeral }: { ephemeral: boolean },
  ): Promise<Thread> {
    const tools = request.tools.map(({ name, description, parameters }) => ({
      type: 'function',
      name,
      description,
      inputSchema: parameters,
    }));
    const answer = await options.server.call('thread/start', {
      ...settings(options, request),
      // Without instructions Codex would use its own, which are for a programmer.
      baseInstructions: flattenMessages(request.messages).system,
      dynamicTools: tools,
      ephemeral,
      experimentalRawEvents: true,
      ...(options.hasShell ? {} : { environments: [] }),
    });
    return new Thread(options, request, { id: ThreadAnswer.parse(answer).thread.id, raw: true });
  }

  /** Loads a thread from disk. Rejects with `provider_session_lost` if it does not exist. */
  static async load(options: ThreadOptions, request: ModelRequest, threadId: string): Promise<Thread> {
    const params = { ...settings(options, request), threadId, excludeTurns: true };
    const answer = await options.server.call('thread/resume', params);
    const { id } = ThreadAnswer.parse(answer).thread;
    return new Thread(options, request, { id, raw: false });
  }

  get leaf(): string | null {
    return this.#leaf;
  }

  /** Id of the last turn; null if it has not begun. */
  get last(): string | null {
    return this.#turn?.id ?? null;
  }

  get isWaiting(): boolean {
    return this.#turn?.isWaiting === true;
  }

  get isIdle(): boolean {
    return this.#turn === null || this.#turn.isOver;
  }

  /** Begins a turn with its images, and one text per message. */
  begin(request: ModelRequest, texts: readonly string[]): void {
    const { server, clock, hasShell, secrets, limits } = this.#options;
    const { model, tools, replySchema } = request;
    const start = {
      input: [
        ...imagesOf(request).map((url) => ({ type: 'image', url })),
        ...texts.map((text) => ({ type: 'text', text, text_elements: [] })),
      ],
      ...(model !== this.#model && model !== 'default' && { model }),
      ...(replySchema && { outputSchema: replySchema }),
      // Sent with every turn, because a resumed thread gets the file system back.
      ...(hasShell ? {} : { environments: [] }),
    };
    this.#model = model;
    this.#leaf = null;
    this.#turn = new Turn({
      server,
      clock,
      threadId: this.id,
      start,
      raw: this.#raw,
      tools: new Set(tools.map(({ name }) => name)),
      secrets,
      limits,
      model,
    });
  }

  answer(messages: readonly PromptMessage[]): void {
    this.#turn?.answer(messages);
  }

  async *step(touch: () => void): AsyncGenerator<ModelEvent> {
    const turn = this.#turn;
    if (!turn) return;
    for await (const event of turn.step(touch)) {
      if (event.type === 'done' && event.stop === 'end') this.#leaf = turn.id;
      yield event;
    }
  }

  /** Ends the open turn, if there is one. */
  async stop(): Promise<void> {
    await this.#turn?.interrupt();
  }

  /** Drops everything after this turn. Returns whether there was anything. */
  async rewind(turnId: string): Promise<boolean> {
    const { server } = this.#options;
    const first = await this.#firstAfter(turnId);
    if (first !== null) await server.call('thread/revert', { threadId: this.id, beforeTurnId: first });
    this.#leaf = turnId;
    return first !== null;
  }

  async #firstAfter(turnId: string): Promise<string | null> {
    let after: string | null = null;
    let cursor: string | null = null;
    do {
      const params = { threadId: this.id, cursor, limit: PAGE, itemsView: 'notLoaded' };
      const page: TurnsPage = TurnsPage.parse(await this.#options.server.call('thread/turns/list', params));
      for (const { id } of page.data) {
        if (id === turnId) return after;
        after = id;
      }
      cursor = page.nextCursor;
    } while (cursor !== null);
    throw new TroupeError('provider_session_lost', `the session has no turn ${turnId}`);
  }

  /** Drops the thread from the memory of the process. This deletes an ephemeral thread. */
  async unload(): Promise<void> {
    await this.stop();
    const { server } = this.#options;
    server.listen(this.id, null);
    // A process that has ended has already dropped it.
    await server.call('thread/unsubscribe', { threadId: this.id }).catch(() => {});
  }

  notified(method: string, params: unknown): void {
    this.#turn?.notified(method, params);
  }

  called(call: ToolCallParams): Promise<ToolAnswer> {
    if (!this.#turn) throw new TroupeError('internal', 'no turn is open');
    return this.#turn.called(call);
  }

  lost(reason: TroupeError): void {
    this.#turn?.lost(reason);
  }
}

function settings(options: ThreadOptions, { model, messages, cacheKey }: ModelRequest) {
  const { system } = flattenMessages(messages);
  return {
    cwd: options.cwdOf(cacheKey),
    approvalPolicy: 'never',
    sandbox: options.sandbox,
    ...(model !== 'default' && { model }),
    ...(system !== '' && { baseInstructions: system }),
  };
}

/** Data URLs, in the order in which the messages name the images. */
function imagesOf({ messages, images }: ModelRequest): string[] {
  const refs = messages.flatMap((message) => (message.role === 'user' ? (message.images ?? []) : []));
  return shownImages(refs, images).map(({ url }) => url);
}
