import { agentAuthor, type Reasoning, type ToolCall } from '../../events/index.ts';
import { placeOfNote, showActivity } from './show-activity.ts';
import { showCalls } from './show-calls.ts';
import type { TurnRun } from './turn-run.ts';

/** Longest reasoning that is shown as it grows, in characters. */
const MAX_GROWING = 65_536;

/**
 * Shows an answer to watchers as the model writes it. Positions count from the beginning of the round. With a redaction,
 * reasoning is shown when it is whole, as it is stored.
 */
export function showAnswer(run: TurnRun) {
  const { deps, runtime } = run;
  const { redaction } = deps;
  const calls = showCalls(run);
  let said = 0;
  let thought = 0;
  /** Reasoning that waits until it is known whether it is of a step or of a message. */
  let unsaid: string | null = null;

  function think(text: string): void {
    const piece = text.slice(0, MAX_GROWING - thought);
    if (piece === '') return;
    showActivity(run, { kind: 'reasoning', index: thought, text: piece });
    thought += piece.length;
  }

  function showUnsaid(kind: 'step' | 'message'): void {
    const where = { kind, author: agentAuthor(runtime.profile) };
    if (unsaid !== null) think(redaction?.text(unsaid, where) ?? unsaid);
    unsaid = null;
  }

  return {
    text(delta: string): void {
      const index = said;
      said += delta.length;
      try {
        deps.onDelta({ ...placeOfNote(run), index, text: delta });
      } catch (error) {
        deps.onWarning(error, 'stream watcher');
      }
    },
    think(text: string): void {
      if (!redaction) think(text);
    },
    /** The whole reasoning. Nothing if it was shown piece by piece. */
    reasoning({ text }: Reasoning): void {
      if (thought > 0) return;
      if (redaction) unsaid = text;
      else think(text);
    },
    write: (id: string, name: string, text: string): void => calls.write(id, name, text),
    call(call: ToolCall): void {
      showUnsaid('step');
      calls.call(call);
    },
    end(): void {
      showUnsaid('message');
      calls.end();
    },
  };
}
