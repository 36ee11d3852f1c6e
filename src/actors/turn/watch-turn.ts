import { agentAuthor, type PinnedTurn, type ToolCall, type Usage } from '../../events/index.ts';
import type { LogIds } from '../../logger.ts';
import type { AgentEvent, EffectName } from '../../machines/agent-lifecycle.ts';
import type { TurnPart } from '../../metrics.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import type { LiveActor } from '../engine/registry.ts';
import { type CallFacts, endAttributes, turnAttributes } from '../engine/span-facts.ts';
import {
  type CallWatch,
  type ToolWatch,
  watchCall,
  type WatchedTurn,
  watchTool,
  within,
} from './watch-calls.ts';

/**
 * Tells operators how a turn goes, in numbers, spans and lines. Nothing of the turn depends on it; without a tracer and a
 * logger it reads clocks and adds numbers.
 */
export interface TurnWatch {
  effect(name: EffectName, work: () => Promise<AgentEvent>): Promise<AgentEvent>;
  call(facts: CallFacts): CallWatch;
  tool(call: ToolCall): ToolWatch;
  /** Once, however the turn ended here. */
  end(ended: TurnEnded): void;
}

interface TurnEnded {
  ending: { kind: 'done' | 'aborted' } | { kind: 'failed'; code: string };
  usage: Usage;
  /** Index of the last step. */
  step: number;
  answer: unknown;
}

/** Of effects whose whole time is one part; that of `callModel` is several. */
const PART_OF: Partial<Record<EffectName, TurnPart>> = {
  assemble: 'build',
  compact: 'relief',
  runCalls: 'tools',
  backOff: 'back_off',
  commit: 'commit',
};

/** Calls of models and tools have spans of their own. */
const SPAN_OF: Partial<Record<EffectName, string>> = {
  assemble: 'build_prompt',
  compact: 'make_room',
  backOff: 'wait_before_retry',
  commit: 'commit',
};

export function watchTurn(
  deps: EngineDeps,
  runtime: AgentRuntime,
  { address }: Pick<LiveActor, 'address'>,
  turn: PinnedTurn,
  resumed: boolean,
): TurnWatch {
  const { clock, metrics, tracer, logger } = deps;
  const { profile } = runtime;
  const began = clock.monotonic();
  const parts = new Map<TurnPart, number>();
  // One that is resumed was counted when it began.
  const waitMs = resumed || turn.at === undefined ? undefined : Math.max(0, clock.now() - turn.at);
  if (waitMs !== undefined) parts.set('wait', waitMs);
  const seq = turn.inputs.at(-1);
  const ids: LogIds = { ...address, turn: turn.id, ...(seq !== undefined && { seq }) };
  const place = { ...address, turn: turn.id, process: deps.process };
  const span = tracer?.span(`invoke_agent ${profile.name}`, {
    kind: 'internal',
    attributes: turnAttributes(profile, place, turn),
  });
  const watched: WatchedTurn = { deps, ids, place, author: agentAuthor(profile), span, add };
  let isCommitted = false;
  if (logger?.isOn('debug'))
    logger.write('debug', 'turn_started', ids, {
      attempt: turn.attempt,
      ...(waitMs !== undefined && { waitMs }),
    });

  function add(part: TurnPart, ms: number): void {
    parts.set(part, (parts.get(part) ?? 0) + ms);
  }

  function calledMs(): number {
    return (parts.get('first_token') ?? 0) + (parts.get('stream') ?? 0);
  }

  return {
    async effect(name, work) {
      const start = clock.monotonic();
      const called = calledMs();
      const title = SPAN_OF[name];
      const own =
        title === undefined
          ? undefined
          : tracer?.span(title, { kind: 'internal', attributes: {}, parent: span });
      const event = await within(own, work);
      own?.end();
      isCommitted ||= name === 'commit';
      const ms = clock.monotonic() - start;
      const part = PART_OF[name];
      if (part) add(part, ms);
      if (name === 'callModel') add('admission', Math.max(0, ms - (calledMs() - called)));
      return event;
    },
    call: (facts) =>
      watchCall(
        watched,
        facts.purpose === 'compaction' ? (runtime.summariser ?? runtime).profile : profile,
        facts,
      ),
    tool: (call) => watchTool(watched, call),
    end({ ending, usage, step, answer }) {
      const ms = clock.monotonic() - began;
      const steps = step + (answer ? 1 : 0);
      const outcome = isCommitted ? ending.kind : 'left';
      const failure = !isCommitted ? 'left' : ending.kind === 'failed' ? ending.code : undefined;
      if (outcome !== 'left') {
        for (const [part, spent] of parts) metrics.time('turn_part', { part }, spent);
        metrics.time('turn', { outcome }, ms);
      }
      if (span) {
        span.set({ 'troupe.steps': steps, 'troupe.outcome': outcome });
        span.set(endAttributes({ kind: 'answered', usage }, false));
        span.end(failure);
      }
      const level = failure === undefined ? 'info' : 'warn';
      if (!logger?.isOn(level)) return;
      logger.write(level, `turn_${outcome}`, ids, {
        ms: Math.round(ms),
        ...(waitMs !== undefined && { waitMs }),
        attempt: turn.attempt,
        steps,
        inputTokens: usage.input,
        outputTokens: usage.output,
        cacheReadTokens: usage.cacheRead,
        ...(isCommitted && failure !== undefined && { error: failure }),
      });
    },
  };
}
