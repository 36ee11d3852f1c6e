import { html } from 'hono/html';
import type { RunScore } from './evals-package.ts';
import type { Markup } from './page-frame.ts';

/** How a score of one run looks: a sign that needs no colour, and the words for it. */
interface ScoreMark {
  sign: string;
  words: string;
  look: 'good' | 'bad' | 'plain';
}

function scoreMark(taken: RunScore | undefined): ScoreMark {
  if (taken === undefined) return { sign: '–', words: 'not scored', look: 'plain' };
  if (taken.kind === 'none') return { sign: '–', words: 'no value', look: 'plain' };
  if (taken.kind === 'failed') return { sign: '!', words: 'the score failed', look: 'bad' };
  if (taken.value === true) return { sign: '✓', words: 'holds', look: 'good' };
  if (taken.value === false) return { sign: '✗', words: 'does not hold', look: 'bad' };
  return { sign: String(Number(taken.value.toPrecision(3))), words: '', look: 'plain' };
}

/** A score failed or does not hold. */
export function isBad(taken: RunScore | undefined): boolean {
  return scoreMark(taken).look === 'bad';
}

/** The mark of one run, as a link to it. */
export function runMark(seed: number, taken: RunScore | undefined, to: string): Markup {
  const { sign, words, look } = scoreMark(taken);
  return html`<a class="eval-mark${classOf(look)}" href="${to}"
    ><span class="eval-unseen">run </span>${seed}: ${sign}<span class="eval-unseen"> ${words}</span></a
  >`;
}

/** A mark with its words. */
export function fullMark(taken: RunScore | undefined): Markup {
  const { sign, words, look } = scoreMark(taken);
  return html`<span class="eval-mark${classOf(look)}">${sign} ${words}</span>`;
}

function classOf(look: ScoreMark['look']): string {
  return look === 'plain' ? '' : ` eval-${look}`;
}
