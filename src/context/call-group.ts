import type { EventId, PromptMessage, StepBody, ToolResultBody } from '../events/index.ts';
import { escapeFences } from './fence.ts';
import { FRAME_TOKENS } from './estimate-tokens.ts';
import { pushMessage, type View } from './view.ts';

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
}

export function openGroup(view: View, body: StepBody, at: Placed): PromptMessage {
  closeGroup(view);
  const calls = body.calls.map((call) => ({ ...call, id: uniqueCallId(view, call.id) }));
  const waiting = body.calls.map(({ id: written, name }, index) => ({
    written,
    id: calls[index]?.id ?? written,
    name,
  }));
  const message: PromptMessage = {
    role: 'assistant',
    content: body.content.toWellFormed(),
    calls,
    seqs: at.seqs,
    ...(body.reasoning && { reasoning: body.reasoning }),
  };
  pushMessage(view, message, at.tokens + FRAME_TOKENS);
  view.group = { waiting };
  return message;
}

/** Vendors reuse ids like call_0 from step to step; within one request each must be unique. */
function uniqueCallId(view: View, id: string): string {
  let unique = id;
  for (let n = 2; view.calls.has(unique); n++) unique = `${id}-${n}`;
  view.calls.add(unique);
  return unique;
}

/** The rendered result, `late` for a call that was already answered synthetically, or null for one that nobody made. */
export function addResult(view: View, body: ToolResultBody, at: Placed): PromptMessage | 'late' | null {
  // Two calls of one step may carry the same id: their results come in the order of the calls.
  const call = view.group?.waiting.find(({ written }) => written === body.call);
  if (!view.group || !call) return view.lost.has(body.call) ? 'late' : null;
  view.group.waiting.splice(view.group.waiting.indexOf(call), 1);
  const message: PromptMessage = {
    role: 'tool',
    call: call.id,
    name: body.name,
    content: body.content.trim() === '' ? NO_OUTPUT : escapeFences(body.content),
    failed: body.outcome !== 'done',
    seqs: at.seqs,
  };
  pushMessage(view, message, at.tokens + FRAME_TOKENS);
  if (view.group.waiting.length === 0) view.group = null;
  return message;
}

/** Gives every call that is still open its synthetic result. */
export function closeGroup(view: View): void {
  if (!view.group) return;
  for (const { written, id, name } of view.group.waiting) {
    view.lost.add(written);
    pushMessage(
      view,
      { role: 'tool', call: id, name, content: INTERRUPTED, failed: true, seqs: [] },
      INTERRUPTED_TOKENS + FRAME_TOKENS,
    );
  }
  view.group = null;
}
