import type { Saying } from '../../events/index.ts';
import { bare, sentencesOf, withoutEnd } from '../text/cut-text.ts';
import { CORRECTION_WORDS, type CorrectionWords } from './correction-words.ts';
import { MOST_PER_EVENT, shownDemand, isDemand, isTelling } from './demands.ts';
import { addSaying, authorOf, keyOf, type Sayings } from './spoken-text.ts';

/**
 * Corrections: how a person's newer words change their older demands. An older demand is removed only if the newer sentence is
 * about this demand alone and withdraws it (*English is fine*, *you may drop that table now*), or if it names its value as
 * wrong (*not 8080: 9090*). Otherwise both stay, the newest last, because a lost ban is worse than a superfluous one. Nobody
 * can withdraw a demand of another person.
 */
type Listed = Exclude<keyof CorrectionWords, 'rather' | 'common' | 'unspaced'>;

const LANGUAGES = Object.values(CORRECTION_WORDS);
const NO_LETTER_BEFORE = String.raw`(?<![\p{L}\p{N}_])`;
const NO_LETTER_AFTER = String.raw`(?![\p{L}\p{M}\p{N}_])`;

/** The words of one kind in all languages. Those of a language with spaces must stand alone. */
function alternativesOf(list: Listed): string {
  const those = (isUnspaced: boolean): string =>
    LANGUAGES.filter(({ unspaced = false }) => unspaced === isUnspaced)
      .flatMap((language) => language[list] ?? [])
      .join('|');
  const unspaced = those(true);
  const alone = `${NO_LETTER_BEFORE}(?:${those(false)})${NO_LETTER_AFTER}`;
  return unspaced === '' ? alone : `${alone}|${unspaced}`;
}

/** Articles and prepositions that precede a value. */
const ARTICLES = String.raw`(?:(?:in|on|at|the|to|auf|an|der|die|das|le|la|el|en|em|o|a|il|в|на)\s+){0,2}`;
const VALUE = String.raw`[\p{L}\p{N}][\p{L}\p{N}_./:-]*`;
const NUMBERED = String.raw`[\p{L}_./:-]{0,40}\p{N}[\p{L}\p{N}_./:-]*`;

const CHANGES = new RegExp(
  `^(?:${alternativesOf('no')})(?=\\s*[,.:;!–—])|${alternativesOf('changes')}`,
  'giu',
);
const ALLOWS = new RegExp(alternativesOf('allows'), 'giu');
const ASIDES = new RegExp(alternativesOf('asides'), 'giu');
/** Precedes a value that no longer holds: `not 8080`, `instead of 8080`. */
const INSTEAD_OF = new RegExp(`(?:${alternativesOf('before')})[\\s,:]*${ARTICLES}(${VALUE})`, 'giu');
/** Follows a value that no longer holds: `8080ではなく9090`, `8080 yerine`. */
const IS_NOT = new RegExp(
  `([\\p{L}\\p{N}_./-]{1,40}?)\\s?(?:${LANGUAGES.flatMap(({ after }) => after ?? []).join('|')})`,
  'giu',
);
/** A value that no longer holds, behind the one that does: `rather 9090 than 8080`. */
const RATHER = new RegExp(
  LANGUAGES.flatMap(({ rather }) => (rather ? [rather] : []))
    .map(
      ([preferred, than]) =>
        `${NO_LETTER_BEFORE}(?:${preferred})\\s[^.;\\n]{1,40}?\\s(?:${than})\\s+${ARTICLES}(${NUMBERED})`,
    )
    .join('|'),
  'giu',
);
const DENIALS = new RegExp(alternativesOf('denies'), 'giu');
const NEGATED = new RegExp(DENIALS.source, 'iu');
/** Forbids no matter: *no more than 20 rows*. */
const LIMITS = new RegExp(alternativesOf('limits'), 'giu');
/** Permits a matter in general and not a single action, if the matter precedes it: *English is fine*. */
const MATTER_IS_FINE = new RegExp(`${alternativesOf('is')}|${alternativesOf('are')}`, 'iu');
const THINGS_ARE_FINE = new RegExp(alternativesOf('are'), 'iu');
/** Describes a state and permits nothing: `The backups are fine`. */
const TELLS_STATE =
  /^(?:and |but |so )?(?:the|my|our|your|this|that|these|those|die|der|das|les?|la|el|los|las|os?|as?|il|lo|i|gli|de|het)(?!\p{L})[^,]{0,80}(?:fine|ok|okay|good|right|ordnung|gut|bien|bem|bom|bene|vanno|prima)(?!\p{L})/iu;
/** A ban with a condition, which is not itself forbidden: `never merge without two approvals`. */
const CONDITIONAL = new RegExp(alternativesOf('unless'), 'iu');
/** A ban whose verb stands at its end, as in German and Dutch: `nie auf Englisch schreiben`. */
const BANS_AT_END = /(?<!\p{L})(?:nie|niemals|nicht|kein\p{L}*|niet|nooit|geen)(?!\p{L})/iu;
const VERB_AT_END = /\s(\p{Ll}{2,40}e[lr]?n)[.!]?$/u;
const QUESTION = /[?？؟]["'”’»)]*$/;
const LONGEST = 280;
const MOST_LEFT = 3;

/** Maximum demands that a sentence is compared with, the newest of its author. Bounds the cost. */
const MOST_COMPARED = 60;
const MOST_REVISIONS = 40;

/** Adds the demands in a person's words, in order. Removes demands that they withdraw. A repeated demand becomes the newest. */
export function addDemandsOf(list: Sayings, text: string, speaker: Omit<Saying, 'text'>): void {
  let found = 0;
  let looked = 0;
  for (const line of sentencesOf(text)) {
    if (found === MOST_PER_EVENT) break;
    const sentence = bare(line);
    if (sentence.length < 3) continue;
    const isNew = sentence.length >= 4 && isDemand(sentence);
    const mayRevise = sentence.length <= LONGEST && looked < MOST_REVISIONS && isAboutEarlier(sentence);
    if (mayRevise) looked += 1;
    const isRevision = mayRevise && revises(list, sentence, speaker);
    if (!isNew && !isRevision) continue;
    found += 1;
    const entry = { text: shownDemand(sentence), ...speaker };
    if (list.get(keyOf(entry))?.untrusted === speaker.untrusted) list.delete(keyOf(entry));
    addSaying(list, entry);
  }
}

function isAboutEarlier(sentence: string): boolean {
  if (QUESTION.test(sentence)) return false;
  return [CHANGES, ALLOWS, RATHER].some((pattern) => sentence.search(pattern) !== -1);
}

/** Whether a sentence corrects older demands of its author. Removes these if the correction is certain. */
function revises(list: Sayings, sentence: string, speaker: Omit<Saying, 'text'>): boolean {
  const isPermission = sentence.search(ALLOWS) !== -1;
  const own = ownEntries(list, speaker);
  if (own.length === 0) return false;
  const said = termsOf(sentence);
  if (said.values.size === 0 && isTelling(sentence.replace(ALLOWS, ' ').trim())) return false;
  const about = own
    .map((entry) => ({ entry, ...compared(said, termsIn(entry)) }))
    .filter(({ shared, sameShape }) => shared > 0 || (sameShape && said.words.size === 0));
  const best = Math.max(0, ...about.map(({ shared }) => shared));
  const nearest = about.filter(({ shared }) => shared === best);
  if (withoutDenied(list, own, sentence)) return true;
  const [one] = nearest;
  if (!one) return false;
  // A sentence with values and no words is about the newest demand with a value of the same form.
  const isOne = nearest.length === 1 || said.words.size === 0;
  const isSure = isOne && one.left === 0 && takesBack(sentence, one, { isPermission });
  if (isSure) list.delete(keyOf(one.entry));
  // A sentence with other words too counts as a correction only if it has few of them.
  return isSure || (one.left <= MOST_LEFT && (best > 0 || one.sameShape));
}

/** Whether a sentence names a value of older demands as wrong. Removes these, except those that forbid the value. */
function withoutDenied(list: Sayings, own: readonly Saying[], sentence: string): boolean {
  const text = parted(sentence);
  const denied = [INSTEAD_OF, IS_NOT, RATHER]
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .map(([, ...values]) => plain(values.find((value) => value !== undefined) ?? ''));
  const about = own.filter((entry) => {
    const { values, words } = termsIn(entry);
    return denied.some((word) => values.has(word) || (!COMMON.has(word) && words.has(stem(word))));
  });
  for (const entry of about) if (!isBan(entry.text)) list.delete(keyOf(entry));
  return about.length > 0;
}

interface Terms {
  /** Numbers and words with a digit. */
  values: ReadonlySet<string>;
  /** Stems of the words that say what it is about. */
  words: ReadonlySet<string>;
  /** Stem of the verb at the end of a ban, in languages that put it there. */
  verb?: string;
}

interface Compared {
  /** Number of words and values that both have. */
  shared: number;
  sameValue: boolean;
  /** The newer sentence contains the last word of the older, which says what it is about, because verbs come before. */
  isSameEnd: boolean;
  /** Number of values of the newer sentence that the older lacks. */
  more: number;
  /** Number of words of the newer sentence that the older lacks. */
  left: number;
  /** Number of words and values of the older that the newer sentence lacks. */
  missed: number;
  /** The older ends with a verb that the newer sentence lacks. */
  isVerbMissed: boolean;
  /** Both have a value of the same form, and the values differ. */
  sameShape: boolean;
}

function takesBack(
  sentence: string,
  about: Compared & { entry: Saying },
  { isPermission }: { isPermission: boolean },
): boolean {
  const { entry, shared, missed, more, sameShape } = about;
  if (!isPermission && !isBan(entry.text)) return sameShape;
  if (NEGATED.test(sentence.replace(CHANGES, ' ').replace(ALLOWS, ' '))) return false;
  if (isPermission)
    return shared > 0 && missed <= mayMiss(sentence, about) && !isUnderCondition(sentence, about);
  // A ban ends when its author orders exactly what it forbids.
  return shared > 1 && missed === 0 && more === 0;
}

/** Whether a ban holds under a condition that the permission does not repeat. */
function isUnderCondition(sentence: string, { entry, missed }: Compared & { entry: Saying }): boolean {
  return CONDITIONAL.test(entry.text) && !(missed === 0 && CONDITIONAL.test(sentence));
}

/**
 * Number of words of a rule that a permission need not name. A permission for a single action must name them all to end the
 * rule: *you can deploy now* does not end *never deploy on Fridays*.
 */
function mayMiss(sentence: string, about: Compared & { entry: Saying }): number {
  const { entry, sameValue, isSameEnd, isVerbMissed } = about;
  if (!permitsMatter(sentence)) return 0;
  if (DENSE.test(entry.text)) return Infinity;
  if (TELLS_STATE.test(sentence)) return sameValue ? 1 : 0;
  if (isSameEnd) return THINGS_ARE_FINE.test(sentence) ? 1 : Infinity;
  return isVerbMissed ? 1 : 0;
}

/** *It is fine to call now* permits a single action, because nothing precedes the verb. */
function permitsMatter(sentence: string): boolean {
  const found = MATTER_IS_FINE.exec(sentence);
  if (!found) return false;
  const { words, values } = termsOf(sentence.slice(0, found.index));
  return words.size + values.size > 0;
}

/** Whether a demand forbids something. *No, not 8080: 9090* corrects a value and forbids nothing. */
function isBan(text: string): boolean {
  const isChange = text.search(CHANGES) === 0;
  const said = isChange ? text.replace(CHANGES, ' ').replace(INSTEAD_OF, ' ') : text;
  return NEGATED.test(said.replace(LIMITS, ' '));
}

function ownEntries(list: Sayings, { by }: Omit<Saying, 'text'>): Saying[] {
  const author = authorOf({ text: '', by });
  const entries = [...list.values()];
  const own: Saying[] = [];
  for (let at = entries.length - 1; at >= 0 && own.length < MOST_COMPARED; at -= 1) {
    const entry = entries[at];
    if (entry && entry.text.length <= LONGEST && authorOf(entry) === author) own.push(entry);
  }
  return own;
}

function compared(newer: Terms, older: Terms): Compared {
  const words = [...newer.words].filter((word) => hasForm(older.words, word)).length;
  const values = [...newer.values].filter((value) => older.values.has(value));
  const shared = words + values.length;
  const forms = new Set([...older.values].map(formOf));
  const sameShape = [...newer.values].some((value) => !older.values.has(value) && forms.has(formOf(value)));
  // A shared value with a letter identifies the matter. A shared number may also be just a limit.
  const isNamed = values.some((value) => /\p{L}/u.test(value));
  const missed = isNamed ? 0 : older.words.size + older.values.size - shared;
  const last = [...older.words].at(-1);
  return {
    shared,
    sameValue: values.length > 0,
    isSameEnd: last !== undefined && hasForm(newer.words, last),
    isVerbMissed: older.verb !== undefined && !hasForm(newer.words, older.verb),
    left: newer.words.size - words,
    more: newer.values.size - values.length,
    missed,
    sameShape,
  };
}

/** Whether the words have this one, or one of three letters that it begins with, or that begins with it: `log`, `logs`. */
function hasForm(words: ReadonlySet<string>, word: string): boolean {
  if (words.has(word) || words.has(word.slice(0, LEAST))) return true;
  return word.length === LEAST && [...words].some((each) => each.startsWith(word));
}

const TERMS = new WeakMap<Saying, Terms>();

function termsIn(entry: Saying): Terms {
  const terms = TERMS.get(entry) ?? termsOf(entry.text);
  TERMS.set(entry, terms);
  return terms;
}

const WORD = /[\p{L}\p{N}][\p{L}\p{M}\p{N}_./:-]*/gu;
const DENSE = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]/u;
/** Japanese writes matters in these, and grammar in others. */
const DENSE_RUN = /[\p{sc=Han}\p{sc=Katakana}ー]+/gu;
/** Words that occur in many demands and do not say what one is about. */
const COMMON: ReadonlySet<string> = new Set(LANGUAGES.flatMap(({ common }) => common?.split(' ') ?? []));

function termsOf(text: string): Terms {
  const values = new Set<string>();
  const words = new Set<string>();
  const said = text.slice(0, LONGEST);
  const rest = [ALLOWS, CHANGES, ASIDES, LIMITS, DENIALS].reduce(
    (left, pattern) => left.replace(pattern, (found) => VERB_IN.exec(found)?.[1] ?? ' '),
    parted(said),
  );
  for (const [written] of rest.matchAll(WORD)) {
    const word = plain(written);
    if (/\p{N}/u.test(word)) values.add(word);
    else if (DENSE.test(word)) for (const [run] of word.matchAll(DENSE_RUN)) addPairs(words, run);
    else if (word.length >= leastOf(word) && !COMMON.has(word)) words.add(stem(word));
  }
  const verb = BANS_AT_END.test(said) ? VERB_AT_END.exec(said)?.[1] : undefined;
  return verb === undefined ? { values, words } : { values, words, verb: stem(verb) };
}

/** Adds each two characters of a text without spaces. */
function addPairs(words: Set<string>, run: string): void {
  if (run.length === 1) words.add(run);
  for (let at = 0; at + 1 < run.length; at += 1) words.add(run.slice(at, at + 2));
}

/** Inserts spaces between digits or Latin letters and adjacent characters of scripts that join words. */
function parted(text: string): string {
  return text.replace(
    /(?<=[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}])(?=\w)|(?<=\w)(?=[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}])/gu,
    ' ',
  );
}

const STEM = 4;
const LEAST = 3;
const HANGUL = /^\p{sc=Hangul}/u;
const KOREAN_PARTICLE = /(?:에게|에서|으로|까지|부터|[을를은는이가의에도만로와과])$/u;
/** Spelling before `e` and `i` in Spanish and Portuguese: `pagar`, `pague`. */
const HARD_G_OR_C = /gu(?=[ei])|qu(?=[ei])/gu;
/** Words whose fourth letter belongs to an ending: `ligar`, `liga`. */
const SHORT_VERB = /^\p{L}{3}[aeiou][rsnm]?$/u;
const SEMITIC = /^[\p{sc=Arabic}\p{sc=Hebrew}]/u;
/** Letters that the forms of a word of Arabic and Hebrew differ in. */
const VOWELS = /[اأإآىيوةءئؤוי\p{M}]/gu;
const PREFIX_OF_ROOT = /^[لبتنלתהבונמ]{1,2}(?=\p{L}{3})/u;
/** Prefixes that German and Dutch separate from the verb: `anrufen`, `ruf … an`. */
const PARTICLE =
  /^(?:ab|an|auf|aus|bei|ein|fort|her|hin|los|mit|nach|vor|weg|weiter|zu|zurück|zusammen|aan|af|door|in|mee|op|over|toe|uit)(?=\p{L}{3,40}en$)/u;

/** Turkish joins permission and ban to the verb: `silebilirsin`, `silmeyin`. */
const VERB_IN = /^(\p{L}{2,40}?)(?:y?[ae]bilir\p{L}{0,6}|m[ae](?:y[ıi]n\p{L}{0,4}|mal[ıi]|meli))$/u;

/** The beginning of a word that its forms share. */
function stem(word: string): string {
  if (HANGUL.test(word)) return (word.replace(KOREAN_PARTICLE, '') || word).slice(0, 2);
  if (SEMITIC.test(word)) return word.replace(VOWELS, '').replace(PREFIX_OF_ROOT, '').slice(0, STEM);
  const base = word.replace(PARTICLE, '').replace(HARD_G_OR_C, (sound) => (sound === 'gu' ? 'g' : 'c'));
  return SHORT_VERB.test(base) ? base.slice(0, LEAST) : base.slice(0, STEM);
}

/** Letters that a word has at least. Shorter ones are particles. */
function leastOf(word: string): number {
  return HANGUL.test(word) ? 2 : LEAST;
}

function plain(word: string): string {
  return withoutEnd(word.toLowerCase(), '.:/-');
}

/** The form of a value: `8080` and `9090` have the same form, `v2` and `v3` another. */
function formOf(value: string): string {
  return value.replace(/\p{N}+/gu, '0');
}
