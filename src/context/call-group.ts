import type { EventId, PromptMessage, StepBody, ToolResultBody, TurnId } from '../events/index.ts';
import { FRAME_TOKENS } from './estimate-tokens.ts';
import { escapeFences } from './fence.ts';
import { pushSlot, type View } from './view.ts';

/**
 * A step and its results stand together in a prompt, whatever the log has between them; every call has exactly one
 * result, or providers refuse the request.
 */
const INTERRUPTED =
  '[no result was recorded: the call was interrupted, or is still running elsewhere. It may have had its effect: do not repeat it, check first. A result that comes later is shown as a new message.]';
const INTERRUPTED_TOKENS = 42;
const NO_OUTPUT = '[no output]';

export interface Placed {
  id: EventId;
  seqs: number[];
  tokens: number;
  turn?: TurnId | undefined;
}

export function openGroup(view: View, body: StepBody, placed: Placed): PromptMessage {
  closeGroup(view);
  const { id: event, seqs, turn } = placed;
  const calls = body.calls.map((call) => ({ ...call, id: uniqueCallId(view, call.id) }));
  const waiting = body.calls.map(({ id: written, name }, index) => ({
    written,
    id: calls[index]?.id ?? written,
    name,
  }));
  const message: PromptMessage = {
    role: 'assistant',
    content: body.content.toWellFormed(),
    // Words that the runtime answered: a plain message.
    ...(calls.length > 0 && { calls }),
    seqs,
    ...(body.reasoning && { reasoning: body.reasoning }),
  };
  const step = turn === undefined ? null : { turn, index: body.index };
  const tokens = placed.tokens + FRAME_TOKENS;
  pushSlot(view, { message, tokens, layer: 'history', part: null, event, at: null, step, artifact: null });
  if (calls.length > 0) view.group = { waiting, step };
  return message;
}

/** Vendors reuse ids like call_0 from step to step; within one request each must be unique. */
function uniqueCallId(view: View, id: string): string {
  const { calls } = view;
  let number = calls.get(id) ?? 0;
  let unique = number === 0 ? id : `${id}-${(number += 1)}`;
  while (unique !== id && calls.has(unique)) unique = `${id}-${(number += 1)}`;
  calls.set(id, Math.max(1, number));
  if (unique !== id) calls.set(unique, 1);
  return unique;
}

/** The rendered result, `late` for a call that was already answered synthetically, or null for one that nobody made. */
export function addResult(view: View, body: ToolResultBody, placed: Placed): PromptMessage | 'late' | null {
  // Two calls of one step may carry the same id: their results come in the order of the calls.
  const { group } = view;
  const call = group?.waiting.find(({ written }) => written === body.call);
  if (!group || !call) return view.lost.has(body.call) ? 'late' : null;
  group.waiting.splice(group.waiting.indexOf(call), 1);
  const { id: event, seqs } = placed;
  const message: PromptMessage = {
    role: 'tool',
    call: call.id,
    name: body.name,
    content: body.content.trim() === '' ? NO_OUTPUT : escapeFences(body.content),
    failed: body.outcome !== 'done',
    seqs,
  };
  const tokens = placed.tokens + FRAME_TOKENS;
  const artifact = body.artifact ?? null;
  pushSlot(view, {
    message,
    tokens,
    layer: 'history',
    part: null,
    event,
    at: null,
    step: group.step,
    artifact,
  });
  if (group.waiting.length === 0) view.group = null;
  return message;
}

/** Gives every call that is still open its synthetic result. */
export function closeGroup(view: View): void {
  const { group } = view;
  if (!group) return;
  for (const { written, id, name } of group.waiting) {
    view.lost.add(written);
    pushSlot(view, {
      message: { role: 'tool', call: id, name, content: INTERRUPTED, failed: true, seqs: [] },
      tokens: INTERRUPTED_TOKENS + FRAME_TOKENS,
      layer: 'history',
      part: null,
      event: null,
      at: null,
      step: group.step,
      artifact: null,
    });
  }
  view.group = null;
}
