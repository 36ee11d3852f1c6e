import type { AgentProfile } from '../../context/index.ts';
import { toTroupeError } from '../../errors.ts';
import type { Author, ToolCall, ToolOutcome } from '../../events/index.ts';
import type { LogIds } from '../../logger.ts';
import type { TurnPart } from '../../metrics.ts';
import type { Span } from '../../tracing.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import {
  callAttributes,
  type CallEnded,
  type CallFacts,
  endAttributes,
  type SpanPlace,
  toolAttributes,
} from '../engine/span-facts.ts';

/** The turn to which calls belong. */
export interface WatchedTurn {
  deps: Pick<EngineDeps, 'clock' | 'metrics' | 'tracer' | 'logger' | 'redaction'>;
  author: Author;
  ids: LogIds;
  place: SpanPlace;
  span: Span | undefined;
  add: (part: TurnPart, ms: number) => void;
}

export interface CallWatch {
  /** Something of the answer has come. */
  heard(): void;
  within<T>(work: () => Promise<T>): Promise<T>;
  end(ended: CallEnded): void;
}

export interface ToolWatch {
  within<T>(work: () => Promise<T>): Promise<T>;
  end(outcome: ToolOutcome, text: string): void;
}

export function watchCall(watched: WatchedTurn, profile: AgentProfile, facts: CallFacts): CallWatch {
  const { deps, ids, place, span: parent, add } = watched;
  const { clock, metrics, tracer, logger } = deps;
  const { provider, model } = profile;
  const start = clock.monotonic();
  let first: number | null = null;
  const span = tracer?.span(`chat ${model}`, {
    kind: 'client',
    attributes: callAttributes(profile, place, facts, tracer.content),
    parent,
  });
  return {
    heard() {
      if (first !== null) return;
      first = clock.monotonic();
      metrics.time('model_first_token', { provider }, first - start);
    },
    within: (work) => within(span, work),
    end(ended) {
      const now = clock.monotonic();
      // The time of a summary is that of the relief.
      if (facts.purpose === 'turn') {
        add('first_token', (first ?? now) - start);
        if (first !== null) add('stream', now - first);
      }
      if (ended.kind === 'failed' && logger?.isOn('info')) {
        const { code: error } = ended;
        logger.write('info', 'model_call_failed', ids, { error, provider, ms: Math.round(now - start) });
      }
      if (!span || !tracer) return;
      span.set(endAttributes(tracer.content ? kept(watched, facts, ended) : ended, tracer.content));
      span.end(ended.kind === 'failed' ? ended.code : ended.kind === 'aborted' ? 'aborted' : undefined);
    },
  };
}

export function watchTool({ deps, place, author, span: parent }: WatchedTurn, call: ToolCall): ToolWatch {
  const { clock, metrics, tracer } = deps;
  const start = clock.monotonic();
  const span = tracer?.span(`execute_tool ${call.name}`, {
    kind: 'internal',
    attributes: toolAttributes(call, place, tracer.content),
    parent,
  });
  return {
    within: (work) => within(span, work),
    end(outcome, text) {
      metrics.time('tool_call', { outcome }, clock.monotonic() - start);
      if (!span || !tracer) return;
      if (tracer.content) {
        const result = deps.redaction?.text(text, { kind: 'tool.result', author }) ?? text;
        span.set({ 'gen_ai.tool.call.result': result });
      }
      span.end(outcome === 'done' || outcome === 'waiting' ? undefined : outcome);
    },
  };
}

/** Words as the log will have them: what the application does not store is not told either. */
function kept(
  { deps: { redaction }, author }: WatchedTurn,
  { purpose }: CallFacts,
  ended: CallEnded,
): CallEnded {
  if (!redaction || ended.kind !== 'answered') return ended;
  const { text = '', calls = [] } = ended;
  const kind = purpose === 'compaction' ? 'compaction' : calls.length > 0 ? 'step' : 'message';
  const where = { kind, author } as const;
  const made = calls.map((call) => ({ ...call, args: redaction.json(call.args, where) }));
  return { ...ended, text: redaction.text(text, where), calls: made };
}

/** Whoever throws ends the span; else it goes on to be told more. */
export async function within<T>(span: Span | undefined, work: () => Promise<T>): Promise<T> {
  if (!span) return work();
  try {
    return await span.within(work);
  } catch (error) {
    span.end(toTroupeError(error).code);
    throw error;
  }
}
