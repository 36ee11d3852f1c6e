import type { Reasoning, ToolCall } from '../../events/index.ts';
import { placeOfNote, showActivity } from './show-activity.ts';
import type { TurnRun } from './turn-run.ts';

/** Longest reasoning and arguments that are shown as they grow, in characters. */
const MAX_GROWING = 65_536;

/** Shows an answer to watchers as the model writes it. Positions count from the beginning of the round. */
export function showAnswer(run: TurnRun) {
  const { deps } = run;
  let said = 0;
  let thought = 0;
  const written = new Map<string, number>();

  function think(text: string): void {
    const piece = text.slice(0, MAX_GROWING - thought);
    if (piece === '') return;
    showActivity(run, { kind: 'reasoning', index: thought, text: piece });
    thought += piece.length;
  }

  function write(call: string, name: string, text: string): void {
    const index = written.get(call) ?? 0;
    const piece = text.slice(0, MAX_GROWING - index);
    if (piece === '' && index > 0) return;
    showActivity(run, { kind: 'arguments', call, name, index, text: piece });
    written.set(call, index + piece.length);
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
    think,
    /** The whole reasoning. Nothing if it was shown piece by piece. */
    reasoning({ text }: Reasoning): void {
      if (thought === 0) think(text);
    },
    write,
    /** A whole call. Nothing if its arguments were shown piece by piece. */
    call({ id, name, args }: ToolCall): void {
      if (!written.has(id)) write(id, name, args);
    },
  };
}
