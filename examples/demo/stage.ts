import type { Author, Event, SentPrompt, Troupe, TurnTrace } from '../../src/index.ts';

/** One turn as the demo shows it: the agent's actions and every prompt it was sent, checked against the log. */
export interface PlayedTurn {
  scene: number;
  agent: string;
  trace: TurnTrace;
  prompts: SentPrompt[];
}

export interface Screen {
  scene(number: number, title: string): void;
  event(event: Event): void | Promise<void>;
  delta(agent: string, text: string): void;
  turn(turn: PlayedTurn): void;
  claim(what: string): void;
  note(text: string): void;
}

type Note = Parameters<Parameters<Troupe['watch']>[0]>[0];

/** Plays a conversation: sends messages, waits until all agents are at rest, and keeps everything in order. */
export class Stage {
  readonly troupe: Troupe;
  readonly conversation: string;
  readonly turns: PlayedTurn[] = [];
  readonly events: Event[] = [];
  readonly #screen: Screen;
  #shown: Promise<void> = Promise.resolve();
  #scene = 0;

  constructor(troupe: Troupe, conversation: string, screen: Screen) {
    this.troupe = troupe;
    this.conversation = conversation;
    this.#screen = screen;
    // One turn at a time: a turn is shown in full before the next one starts to print.
    troupe.watch((note) => {
      this.#shown = this.#shown.then(() => this.#show(note));
    });
  }

  scene(title: string): void {
    this.#scene += 1;
    this.#screen.scene(this.#scene, title);
  }

  note(text: string): void {
    this.#screen.note(text);
  }

  async say(author: Author, to: readonly string[], content: string): Promise<Event> {
    const { event } = await this.troupe.send(this.conversation, { author, to, content });
    return event;
  }

  /** Waits until every agent is at rest and everything is shown. Returns the turns since `before`. */
  async quiet(before = this.turns.length): Promise<PlayedTurn[]> {
    await this.troupe.idle();
    await this.#shown;
    return this.turns.slice(before);
  }

  /** Sends a message and waits for everything that follows from it. */
  async play(author: Author, to: readonly string[], content: string): Promise<PlayedTurn[]> {
    const before = this.turns.length;
    await this.say(author, to, content);
    return this.quiet(before);
  }

  /** States what a scene has shown; ends the demo if it does not hold. */
  claim(what: string, holds: boolean): void {
    if (!holds) throw new Error(`scene ${this.#scene}: this claim does not hold: ${what}`);
    this.#screen.claim(what);
  }

  async #show(note: Note): Promise<void> {
    if (note.type === 'text') return this.#screen.delta(note.agent, note.text);
    if (note.type !== 'event') return;
    const { event } = note;
    this.events.push(event);
    await this.#screen.event(event);
    if (!/^turn\.(done|failed|aborted)$/.test(event.kind) || event.turn === undefined) return;
    const played = await this.#read(event.turn);
    this.turns.push(played);
    this.#screen.turn(played);
  }

  async #read(turn: string): Promise<PlayedTurn> {
    const trace = await this.troupe.trace(turn);
    const steps = trace.prompts.map((_, index) => this.troupe.promptOf(turn, index + 1));
    return { scene: this.#scene, agent: trace.agent, trace, prompts: await Promise.all(steps) };
  }
}

export function opening({ prompts, trace }: PlayedTurn): SentPrompt {
  const [first] = prompts;
  if (!first) throw new Error(`turn ${trace.turn} sent no prompt`);
  return first;
}

/** Everything in a prompt that is neither frozen nor the agent's own, as one text. */
export function heard(prompt: SentPrompt): string {
  return prompt.messages
    .filter(({ role }) => role === 'user')
    .map(({ content }) => content)
    .join('\n\n');
}

/** The block or handoff that opens the turn's input; '' if there is none. */
export function missedBlock(prompt: SentPrompt): string {
  const block = prompt.messages.findLast(
    ({ role, content }) =>
      role === 'user' && /^\[new #|^\[@[^\n]*handed this conversation over/.test(content),
  );
  const tokens = prompt.layers.find(({ name }) => name === 'missed')?.tokens ?? 0;
  return tokens > 0 ? (block?.content ?? '') : '';
}

export function replyOf({ trace }: PlayedTurn): string {
  const reply = trace.events.find(({ kind, turn }) => kind === 'message' && turn === trace.turn);
  return reply?.kind === 'message' ? reply.body.content : '';
}

/** The events that woke the agent. */
export function triggersOf({ trace }: PlayedTurn): Event[] {
  const started = trace.events.find(({ kind }) => kind === 'turn.started');
  const inputs = started?.kind === 'turn.started' ? started.body.inputs : [];
  return trace.events.filter(({ seq }) => inputs.includes(seq));
}
