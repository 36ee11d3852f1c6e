import { isAbout, isImported } from '../events/aspects.ts';
import type { KindAbout } from '../events/kinds.ts';
import type {
  AgentId,
  CompactionProgressBody,
  CompactionReason,
  CompactionStrategy,
  Event,
  EventOf,
} from '../events/index.ts';

/** The compactions of a conversation, as its state shows them. A fold of its log. Immutable. */
export interface CompactionFold {
  /** Prompts that were compacted or pruned. */
  count: number;
  /** Agents whose prompts are being compacted. */
  running: readonly AgentId[];
  /** Commands to compact that no turn has taken up yet, by agent. */
  requested: Readonly<Record<AgentId, number>>;
  /** The newest of them. */
  last: LastCompaction | null;
}

/** Whether a person here asks for a compaction. An imported request was for an agent elsewhere. */
export function asksToCompact(event: EventOf<'command'>): boolean {
  return event.body.command === 'compact' && !isImported(event);
}

/** The last compaction that ended. Tokens are of the whole prompt, as counted here. */
interface LastCompaction {
  /** Id of the agent. */
  agent: AgentId;
  /** Seq of the event that records its end. */
  seq: number;
  /** Time, ms since the epoch. */
  at: number;
  /** Why it ran. */
  reason: CompactionReason;
  /** `failed`: the prompt stayed as it was. */
  outcome: 'compacted' | 'pruned' | 'failed';
  /** Whether a model wrote the summary. Null: nothing was summarised. */
  strategy: CompactionStrategy | null;
  /** Size of the prompt, tokens. */
  tokens: { before: number; after: number | null };
}

export const NO_COMPACTIONS: CompactionFold = { count: 0, running: [], requested: {}, last: null };

export function foldCompactions(fold: CompactionFold, event: Event): CompactionFold {
  if (event.kind === 'command') return request(fold, event);
  if (event.kind === 'turn.started') return takeUp(fold, event);
  if (isAbout(event, 'turnEnd')) return ended(fold, event.author.id as AgentId);
  return isAbout(event, 'compaction') ? foldNote(fold, event) : fold;
}

function request(fold: CompactionFold, event: EventOf<'command'>): CompactionFold {
  const { seq, body } = event;
  const { agent } = body;
  if (!asksToCompact(event) || agent === undefined) return fold;
  return { ...fold, requested: { ...fold.requested, [agent]: seq } };
}

function takeUp(fold: CompactionFold, { author, body }: EventOf<'turn.started'>): CompactionFold {
  const agent = author.id as AgentId;
  const { [agent]: seq, ...others } = fold.requested;
  return seq === undefined || seq > body.upTo ? fold : { ...fold, requested: others };
}

function foldNote(fold: CompactionFold, event: CompactionEvent): CompactionFold {
  switch (event.kind) {
    case 'compaction.progress':
      return foldProgress(fold, event);
    case 'compaction':
    case 'baseline':
      return fold;
  }
}

/** Whether a run has ended. If a failure names a strategy, only this strategy failed and the next one is tried. */
export function hasEnded<B extends Pick<CompactionProgressBody, 'phase' | 'strategy'>>(
  body: B,
): body is B & Over {
  const { phase, strategy } = body;
  return phase === 'done' || phase === 'pruned' || (phase === 'failed' && strategy === undefined);
}

type Over = { phase: 'done' | 'pruned' | 'failed' };
type CompactionEvent = EventOf<KindAbout<'compaction'>>;

function foldProgress(
  fold: CompactionFold,
  { seq, at, body }: EventOf<'compaction.progress'>,
): CompactionFold {
  const { agent } = body;
  if (body.phase === 'started') return { ...fold, running: [...ended(fold, agent).running, agent] };
  if (!hasEnded(body)) return fold;
  const { phase, reason, strategy = null, tokens } = body;
  const outcome = phase === 'done' ? 'compacted' : phase;
  return {
    ...ended(fold, agent),
    count: fold.count + (outcome === 'failed' ? 0 : 1),
    last: { agent, seq, at, reason, outcome, strategy, tokens },
  };
}

/** The end of a turn also ends its unfinished compaction. */
function ended(fold: CompactionFold, agent: AgentId): CompactionFold {
  if (!fold.running.includes(agent)) return fold;
  return { ...fold, running: fold.running.filter((each) => each !== agent) };
}
