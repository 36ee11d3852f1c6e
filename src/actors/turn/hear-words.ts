import { agentLabel, AnswerCleaner } from '../../context/index.ts';
import type { ModelEvent } from '../../providers/provider.ts';
import type { ModelAnswer, TurnRun } from './turn-run.ts';

/** What follows words that still wait: watchers see both in their order. */
const ENDS_WORDS: ReadonlySet<ModelEvent['type']> = new Set([
  'reasoning',
  'calling',
  'call',
  'done',
  'failed',
  'aborted',
]);

/**
 * Collects the words of an answer without copied marks of the prompt. What `show` is given, piece by piece, is what is stored.
 */
export function hearWords({ runtime }: TurnRun, show: (piece: string) => void) {
  const cleaner = new AnswerCleaner(agentLabel(runtime.profile.id), runtime.profile.framing);
  let text = '';
  let original = '';

  function say(piece: string): void {
    if (piece === '') return;
    text += piece;
    show(piece);
  }

  return {
    push(delta: string): void {
      original += delta;
      say(cleaner.push(delta));
    },
    /** Of every event, before it counts. */
    before(type: ModelEvent['type']): void {
      if (ENDS_WORDS.has(type)) say(cleaner.end());
    },
    said: (): Pick<ModelAnswer, 'text' | 'original'> => (original === text ? { text } : { text, original }),
  };
}
