import { workIn } from '../../actors/conversations/conversation-state.ts';
import type { Answer, AskOptions, Asked, FollowOptions, Troupe } from '../troupe.ts';
import { toolPlace } from '../../actors/turn/run-calls.ts';
import { ask, type CostOf } from '../asking/ask.ts';
import { addressed, messageFrom, nobodyAnswers } from '../asking/asked.ts';
import { followConversation } from '../asking/follow.ts';
import { TroupeError } from '../../base/errors.ts';
import type { ActorAddress, AgentId, Event, Note } from '../../events/index.ts';
import { costOf } from '../../providers/prices.ts';
import { conversationId } from './parse-input.ts';
import { checkOptionsOf } from './read-options.ts';
import type { TenantContext } from './tenant-context.ts';

/** The methods that wait for what follows from a message. `itself`: the troupe that they belong to. */
export function askingMethods(context: TenantContext, itself: () => Troupe) {
  const { parts, tenant, closed } = context;
  const { clock, agents } = parts.deps;

  const priced: CostOf = (agent, usage) => {
    const price = agents.get(agent as AgentId)?.price ?? null;
    return price && costOf(usage, price);
  };

  async function* answering(
    conversation: string,
    asked: Asked,
    options: AskOptions,
  ): AsyncGenerator<Note, Answer> {
    // Before the message wakes the agents that are to answer.
    const place = toolPlace();
    const returnPlace = await place?.lend();
    try {
      const { event } = await itself().send(conversation, addressed(messageFrom(asked), context.agents));
      if (event.to.length === 0) throw nobodyAnswers();
      if (place) refuseToAskItself(place.address, event);
      return yield* answersTo(event, options);
    } finally {
      await returnPlace?.();
    }
  }

  async function* answersTo(event: Event, { signal, timeoutMs }: AskOptions): AsyncGenerator<Note, Answer> {
    const isOver = new AbortController();
    const late = new AbortController();
    if (timeoutMs !== undefined) void clock.sleep(timeoutMs, isOver.signal).then(() => late.abort());
    const ends = AbortSignal.any([closed, late.signal, ...(signal ? [signal] : [])]);
    const root = { tenant, conversation: event.conversation };
    const work = () => workIn(parts.deps, root, { after: event.seq });
    const stuck = async () =>
      (await itself().stuck({ afterMs: 0, among: [event.conversation] })).stuck.filter(({ conversation }) =>
        isWithin(conversation, event.conversation),
      );
    try {
      return yield* ask(event, { troupe: itself(), clock, work, stuck, signal: ends }, priced);
    } finally {
      isOver.abort();
    }
  }

  async function* rejoined(
    conversation: string,
    seq: number,
    options: AskOptions,
  ): AsyncGenerator<Note, Answer> {
    const { events } = await itself().events(conversation, { after: seq - 1, limit: 1 });
    const [event] = events;
    if (!event || event.seq !== seq || !wakesAgents(event)) throw notRejoinable(conversation, seq);
    return yield* answersTo(event, options);
  }

  return {
    stream(conversation, asked, options = {}) {
      checkOptionsOf('stream', options);
      return answering(conversation, asked, options);
    },
    rejoin(conversation, seq, options = {}) {
      checkOptionsOf('rejoin', options);
      return rejoined(conversation, seq, options);
    },
    async ask(conversation, asked, options = {}) {
      checkOptionsOf('ask', options);
      const going = answering(conversation, asked, options);
      let next = await going.next();
      while (!next.done) next = await going.next();
      return next.value;
    },
    follow(conversation, options = {}) {
      checkOptionsOf('follow', options);
      return followed(itself(), conversation, { ...options, clock, closed });
    },
  } satisfies Partial<Troupe>;
}

async function* followed(
  troupe: Troupe,
  conversation: string,
  {
    after = 0,
    signal,
    clock,
    closed,
  }: FollowOptions & { clock: TenantContext['parts']['deps']['clock']; closed: AbortSignal },
): AsyncGenerator<Event, void> {
  const ends = signal ? AbortSignal.any([signal, closed]) : closed;
  const frames = followConversation(conversationId(conversation), after, { troupe, clock, signal: ends });
  for await (const frame of frames) if (frame.type === 'event') yield frame.event;
}

/** A tool that waits for its own agent would wait for the end of its own turn. */
function refuseToAskItself(own: ActorAddress, { tenant, conversation, to }: Event): void {
  if (own.tenant !== tenant || own.conversation !== conversation || !to.includes(own.agent)) return;
  const message = `a tool of @${own.agent} asks @${own.agent} itself in ${conversation}: it would wait for its own turn. The message is stored and is answered after this turn; to ask others, name them in "to"`;
  throw new TroupeError('command_refused', message, { agent: own.agent, conversation });
}

function notRejoinable(conversation: string, seq: number): TroupeError {
  return new TroupeError(
    'event_invalid',
    `seq: "${conversation}" has no event ${seq} that agents are to answer; give the seq of a message, or of what a command has recorded`,
    { path: 'seq' },
  );
}

/** A conversation, or a thread of its tasks. */
function isWithin(conversation: string, root: string): boolean {
  return conversation === root || conversation.startsWith(`${root}.`);
}

/** What begins a run addresses nobody: its steps do. */
function wakesAgents({ to, kind }: Event): boolean {
  return to.length > 0 || kind === 'run.directive';
}
