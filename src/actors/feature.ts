import type { Clock } from '../base/clock.ts';
import type { Author, CommandOf, Event, TenantId } from '../events/index.ts';
import type { Metrics } from '../events/metrics.ts';
import type { Embedder } from '../providers/embedder.ts';
import type { ConversationKey, Store } from '../store/store.ts';
import type { ConversationDeps } from './conversations/conversation-deps.ts';
import type { BudgetCaps, Schedule, Workflow } from './turn/feature-types.ts';
import type { Features } from './turn/turn-run.ts';

/** What only some companies use: a folder of `src/actors` with one such object, listed in `features.ts`. */
export interface Feature {
  /** Its hooks in this process. None if what is defined does not need it. */
  open(parts: FeatureParts): Features;
  readonly commands?: FeatureCommands;
}

export interface FeatureParts {
  store: Store;
  clock: Clock;
  /** 0 <= n < 1. */
  random: () => number;
  metrics: Metrics;
  onWarning: (error: unknown, where: string) => void;
  /** Release of this code: folds that another one has stored are not used. */
  release: string;
  /** Least events between two stored folds. Default: that of the feature. */
  foldEvery?: number | undefined;
  caps?: BudgetCaps;
  schedules?: readonly Schedule[];
  /** Default: memories are searched by words alone. */
  embedder?: Embedder | null;
  /** Longest waits for the vector of a search, ms; see `MemorySearchDeps`. */
  deadlineMs?: number | undefined;
  firstDeadlineMs?: number | undefined;
}

/** Commands that a feature carries out. Without it they are refused. */
export interface FeatureCommands {
  /** Runs an ended turn again, in a fork. */
  readonly rerun?: (
    conversations: ConversationDeps,
    tenant: TenantId,
    command: CommandOf<'rerun'>,
    by: Author,
  ) => Promise<Event>;
  readonly phase?: (
    conversations: ConversationDeps,
    log: ConversationKey,
    command: CommandOf<'phase'>,
    by: Author,
  ) => Promise<Event>;
  readonly run?: (
    conversations: ConversationDeps & { workflows: readonly Workflow[] },
    log: ConversationKey,
    command: CommandOf<'run'>,
    by: Author,
  ) => Promise<Event>;
}
