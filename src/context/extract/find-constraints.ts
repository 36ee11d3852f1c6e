import { CONSTRAINT, REFUSAL } from './lexicon.ts';
import { bare, capped, sentencesOf } from './sentences.ts';

const MAX_CONSTRAINT = 320;
/** A page of rules is kept whole; a pasted book is not. */
const MAX_PER_EVENT = 80;
/** An agent that repeats what it was told. */
const QUOTES_A_PERSON =
  /\b(?:you(?:['’]ve| have)? (?:asked|said|told|want|wanted|prefer|preferred|requested|specified|mentioned)|the (?:user|customer|client)|as (?:you )?(?:requested|instructed)|your (?:preference|instruction|request|constraint|requirement)s?|per your|sie (?:sagten|wollten|möchten)|vous (?:avez|voulez)|usted|você|lei ha|вы (?:сказали|просили|хотели))(?![\p{L}\p{N}_])|(?:您|你)(?:说|要求|希望)|とのこと|ご希望/iu;

/** What an agent asks, nobody has demanded. */
const QUESTION = /[?？]["'”’»)]*$/;

/** What must, must not, or had better be, in the words of whoever said it. */
export function constraintsOf(text: string, byAgent: boolean): string[] {
  const found: string[] = [];
  for (const line of sentencesOf(text)) {
    const sentence = bare(line);
    if (sentence.length < 4 || !isConstraint(sentence)) continue;
    if (byAgent && (QUESTION.test(sentence) || !QUOTES_A_PERSON.test(sentence))) continue;
    found.push(capped(sentence, MAX_CONSTRAINT, CONSTRAINT));
    if (found.length === MAX_PER_EVENT) break;
  }
  return found;
}

/** Code and logs are full of these words, and forbid nobody anything. */
function isConstraint(sentence: string): boolean {
  return (
    (CONSTRAINT.test(sentence) || REFUSAL.test(sentence)) &&
    !/[;{}]\s*$|^[+-]?\s*(?:const|let|var|return|import|\/\/)\s/.test(sentence)
  );
}
