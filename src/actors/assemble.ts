import { beginTurn, buildPrompt, foldAhead, receiptOf } from '../context/index.ts';
import type { AgentEvent } from '../machines/agent-lifecycle.ts';
import { type TurnRun, writeMeanwhile } from './turn-run.ts';

/** Builds the prompt of the present step from the warm view, and writes its receipt down. */
export async function assemble(run: TurnRun): Promise<AgentEvent> {
  const { deps, live, turn, member } = run;
  const view = live.view;
  beginTurnOnce(run);
  for (const draft of run.outputs) foldAhead(view, draft, deps.countTokens);
  const prompt = buildPrompt({
    view,
    conversation: live.address.conversation,
    agent: member.profile,
    baseline: { ...run.baseline, source: turn.baseline },
    step: run.step + 1,
  });
  run.prompt = { ...prompt, upTo: turn.upTo };
  if (prompt.tokens.free < 0) {
    const { total, window, reserved } = prompt.tokens;
    run.ending = {
      kind: 'failed',
      code: 'context_overflow',
      message: `the prompt has ${total} tokens; ${window} - ${reserved} reserved for the answer leave ${window - reserved}. Largest layers: ${largest(run)}`,
    };
    return { type: 'REFUSED' };
  }
  const { tenant } = live.address;
  const now = deps.clock.now();
  writeMeanwhile(run, deps.store.putReceipt(tenant, receiptOf(run.prompt), now));
  return { type: 'PROMPT_READY' };
}

function beginTurnOnce({ live, turn }: TurnRun): void {
  if (live.view.turn?.id === turn.id) return;
  const { id, upTo, inputs, live: items, join, baseline } = turn;
  beginTurn(live.view, { id, upTo, inputs, live: items, join, baseline });
}

function largest({ prompt }: TurnRun): string {
  const layers = [...(prompt?.layers ?? [])].sort((a, b) => b.tokens - a.tokens).slice(0, 3);
  return layers.map(({ name, tokens }) => `${name} ${tokens}`).join(', ');
}
