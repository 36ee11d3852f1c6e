import { type Event, messageText, type Quote } from '../../events/index.ts';
import { sentencesOf, bare } from '../text/cut-text.ts';
import { isTrustedPerson, type Trusted } from '../text/people.ts';
import type { Steps } from '../text/steps.ts';
import { wordsOf } from '../text/words.ts';
import { GOAL, isChatter } from './lexicon.ts';

/** Words that may precede the message proper: `Ok, Bo, please …`. */
const OPENING = String.raw`^(?:[\p{L}\p{N}_@'’-]{1,24}[,!:—–]{1,2}\s*|(?:please|ok(?:ay)?|actually|so|no|and|but|bitte|also|y|et|ну)\s+){0,4}`;
const LETS = String.raw`(?:let['’]?s |you (?:can|may) |we (?:can |should )?)?`;
/** Phrases that give up a goal. Most must begin the sentence; verbs of languages that put them at the end need not. */
const GIVEN_UP = new RegExp(
  `${OPENING}(?:${[
    String.raw`${LETS}(?:forget|scrap|abandon|shelve)(?: about)? (?:that|it|this|these|those|all|everything|what i|what we|the|my|our)`,
    String.raw`${LETS}(?:drop|ditch|stop)(?: doing| with)? (?:that|it|this|these|those|everything)(?=\s*(?:[,.;:!—–]|$|and ))`,
    String.raw`change of plans?|plans? (?:have |has )?changed|new (?:goal|task|plan|request)|we (?:are|'re|’re) no longer|instead of (?:that|this|the|my|our|writing|building|doing)`,
    String.raw`vergiss|vergesst|vergessen (?:sie|wir)|lass(?:t|en)? (?:wir |sie )?(?:das|es)|planänderung|neues? (?:ziel|aufgabe|plan)|statt (?:des|der|dessen)`,
    String.raw`oublie[zs]?|oublions|laisse[zs]? tomber|laissons tomber|changement de (?:plan|programme)|nouvel objectif|au lieu d`,
    String.raw`olv[ií]d[ae](?:te|lo|nse|mos)?|cambio de planes?|dej[ae] (?:eso|esto)|nuevo objetivo|en (?:vez|lugar) de`,
    String.raw`esque[cç][ae](?:m|mos)?|mudança de planos?|deix[ae] (?:isso|para lá)|novo objetivo|em vez d`,
    String.raw`dimentica(?:te|lo|mo)?|lascia(?:te|mo)? (?:perdere|stare)|cambio di (?:programma|piani)|nuovo obiettivo|invece d`,
    String.raw`забудь(?:те)?|забудем|планы? (?:изменил\p{L}*|поменял\p{L}*)|смена планов|новая (?:цель|задача)|вместо`,
    String.raw`vergeet|laat (?:dat|het) maar|unut(?:un)?|boş ?ver(?:in)?|zapomnij\p{L}*|glöm|quên|bỏ qua|lupakan|انس[َى]?|دعك|תשכח\p{L}*|עזוב`,
  ].join(
    '|',
  )})(?![\\p{L}\\p{N}_])|${OPENING}(?:忘了|忘掉|忘記|算了|计划(?:变|改)|計劃(?:變|改)|改计划)|(?:忘れて|やめて)(?=[、。，,.!！]|ください|下さい|くれ|$)|(?:予定|計画|方針)(?:の|を)?変更|잊어(?= ?(?:버려|줘|주세요|주십시오|[,.]))|그만두고|계획 ?변경|भूल (?:जा|जाइए)`,
  'iu',
);
/** Endings of such phrases after which the given-up goal is named: `forget the`, `vergiss`, `au lieu d`. */
const NAMES_IT =
  /(?:the|my|our|what (?:i|we)|doing|writing|building|vergiss|vergesst|vergessen (?:sie|wir)|des|der|oublie[zs]?|oublions|au lieu d|olv[ií]d\p{L}*|(?:vez|lugar) de|esque[cç]\p{L}*|em vez d|dimentica\p{L}*|invece d|забудь(?:те)?|забудем|вместо|vergeet|unut(?:un)?|zapomnij\p{L}*|glöm|quên|lupakan|忘了|忘掉|忘記)$/iu;
/** Words that name the whole goal: `about that`, `об этом`. */
const ALL_OF_IT =
  /^(?:(?:about|об?|de|di|over|van)\s+)?(?:that|it|this|these|those|all|everything|das|es|dies|alles|ça|cela|ceci|tout|eso|esto|todo|isso|isto|tudo|questo|quello|tutto|этом|это|вс[её]|dat|het|bunu|onu|to|det|đó|itu)(?!\p{L})|^(?:这|那|它|これ|それ|全部)/iu;
const OBJECT_ENDS = /[,;:.!?，。：；、！？—–]|\s(?:and|instead|now|und|et|y|e|и|en)\s/iu;
/** Words by which such a sentence means the opposite: `vergiss das nicht`, `olvida no`, `忘れないで`. */
const REMEMBERED = /(?<![\p{L}])(?:nicht|pas|niet|değil|don['’]?t|do not|never)(?![\p{L}])|忘れない|잊지/iu;
/** Phrases that may give up a goal or just a detail. They count only if a new goal follows explicitly. */
const NEVER_MIND = new RegExp(
  `${OPENING}(?:never ?mind|leave (?:that|it)|${LETS}(?:drop|ditch|stop)(?: with| working on)? (?:the|my|our))(?![\\p{L}])`,
  'iu',
);
const TURN =
  /(?<![\p{L}])(?:now|instead|let['’]?s|from here|jetzt|stattdessen|lieber|maintenant|plutôt|à la place|ahora|mejor|en su lugar|agora|melhor|adesso|ora|invece|теперь|лучше|nu|liever|şimdi|yerine|teraz|الآن|עכשיו|अब|bây giờ)(?![\p{L}])|现在|現在|改做|改成|今(?:は|から|度)|代わりに|이제|대신/iu;
/** Sentences that describe their speaker or the matter and ask for nothing: `I found it myself`, `it was nothing`. */
const TELLS =
  /^(?:i(?!['’]d| want| need| would| prefer)|it|that|this|he|she|they|there|you(?: (?:are|were|have|did)|['’])|ich (?:bin|habe)|es|das|c['’]est|j['’]ai|ya|fue|já|foi|è|я|это)(?:['’]\p{L}+)?(?![\p{L}])/iu;
/** Sentences that describe a state: `the title is fine as it was`. */
const TELLS_STATE = /^(?:the|my|our|your) [^,]{0,60}?\s(?:is|are|was|were)(?!\p{L})/iu;
const LEAST_LETTERS = 12;
/** Characters of Chinese, Japanese and Korean, each of which counts as several letters. */
const DENSE = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/gu;
const DENSE_LETTERS = 4;

/** Maximum sentences examined. A longer text states its goal in one of the first. */
const MOST_SENTENCES = 40;
const MOST_CHARS = 8_192;
const LOOK = 64;
const MOST_GOALS = 6;

/** What a message says about earlier goals: nothing, that they are given up, or what replaces them. */
type Turned = 'no' | 'given up' | 'replaced';

/** `given`: texts of the requests and goals that may be meant. Giving up only a part of one counts as 'no'. */
function turnedBy(sentences: readonly string[], given: readonly string[]): Turned {
  const at = sentences.findIndex((sentence) => isGivenUp(sentence) || NEVER_MIND.test(sentence));
  const sentence = sentences[at];
  if (sentence === undefined) return 'no';
  const isSure = isGivenUp(sentence);
  const [opening = ''] = (isSure ? GIVEN_UP : NEVER_MIND).exec(sentence) ?? [];
  const rest = sentence.slice(opening.length);
  if (!isAllOfIt(opening, rest, given)) return 'no';
  const others = [newIn(rest), ...sentences.slice(at + 1)];
  const next = others.map((text) => text.trim()).find((text) => text !== '' && !isChatter(text)) ?? '';
  if (givesWork(next) && (isSure || TURN.test(next))) return 'replaced';
  return isSure && next === '' ? 'given up' : 'no';
}

/** Whether a whole request or goal is given up, and not a part of one. */
function isAllOfIt(opening: string, rest: string, given: readonly string[]): boolean {
  if (!NAMES_IT.test(opening)) return true;
  const [object = ''] = rest.split(OBJECT_ENDS, 1);
  return ALL_OF_IT.test(object.trim()) || sharesWords(object, given);
}

/** The new goal in the same sentence, which may follow the given-up one: `Forget the register, now we write …`. */
function newIn(rest: string): string {
  const behind = rest.replace(/^[^,;:.!?，。：；、—–]{0,80}[,;:.!?，。：；、—–]+\s*/u, '');
  if (behind !== '' && behind !== rest) return behind;
  return TURN.test(rest) ? rest : '';
}

function givesWork(text: string): boolean {
  const isTold = TELLS.test(text) || (TELLS_STATE.test(text) && !TURN.test(text));
  return lettersIn(text) >= LEAST_LETTERS && !isTold && !/[?？]$/.test(text);
}

function isGivenUp(sentence: string): boolean {
  return GIVEN_UP.test(sentence) && !REMEMBERED.test(sentence.split(/[,;:，；：]/, 1)[0] ?? '');
}

/** Whether the object shares a word with one of the texts, or names nothing. */
function sharesWords(object: string, given: readonly string[]): boolean {
  const named = mattersIn(object);
  if (named.length === 0) return true;
  return given.some((text) => mattersIn(text).some((word) => named.includes(word)));
}

/** The words of a text that say what it is about: long words, and pairs of characters of scripts without spaces. */
function mattersIn(text: string): string[] {
  return wordsOf(text).filter((word) => word.length >= LEAST_WORD || word.search(DENSE) !== -1);
}

const LEAST_WORD = 4;

function lettersIn(text: string): number {
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  return letters + (text.match(DENSE)?.length ?? 0) * (DENSE_LETTERS - 1);
}

/** A message that every compaction keeps until another message replaces it. */
export interface Pin {
  seq: number;
  why: NonNullable<Quote['pinned']>;
  /** Id of the author. */
  by: string;
  text: string;
}

export interface Pins {
  /** Pinned messages, ascending by seq. */
  pinned: Pin[];
  /** By the seq of a replaced request or goal, the seq of the message that replaces it. */
  replaced: ReadonlyMap<number, number>;
}

/** The pins and replacements in the quotes of a compaction. */
export function pinsOf(quotes: readonly Quote[]): Pins {
  return {
    pinned: quotes.flatMap(({ seq, pinned, by, text }) =>
      pinned && by !== undefined ? [{ seq, why: pinned, by, text }] : [],
    ),
    replaced: new Map(quotes.flatMap(({ seq, replacedBy }) => (replacedBy ? [[seq, replacedBy]] : []))),
  };
}

/**
 * The first request and the stated goals of trusted people. Only the person who gave a goal can replace it: *forget that, now
 * …*. If somebody else says so, both stay.
 */
export function* pinSteps(events: readonly Event[], before: Pins, trusted: Trusted): Steps<Pins> {
  const standing: Standing = {
    request: before.pinned.find(({ why }) => why === 'request') ?? null,
    goals: before.pinned.filter(({ why }) => why === 'goal'),
    replaced: new Map(before.replaced),
    free: null,
  };
  for (const event of events) {
    if (event.kind !== 'message' || event.author.kind !== 'user' || !isTrustedPerson(trusted, event))
      continue;
    const text = messageText(event.body).slice(0, MOST_CHARS);
    if (text.trim() !== '' && !isChatter(text))
      readMessage(standing, { seq: event.seq, by: event.author.id, text });
    yield LOOK + text.length;
  }
  const { request, goals, replaced } = standing;
  const pinned = [...(request ? [request] : []), ...goals].toSorted((a, b) => a.seq - b.seq);
  return { pinned, replaced };
}

interface Standing {
  request: Pin | null;
  goals: Pin[];
  replaced: Map<number, number>;
  /** Id of the person whose last message gave up the request without naming a new one. */
  free: string | null;
}

function readMessage(standing: Standing, message: Omit<Pin, 'why'>): void {
  const { request, goals, free } = standing;
  const { by, text } = message;
  if (request === null) {
    standing.request = { ...message, why: 'request' };
    return;
  }
  const sentences = sentencesOf(text).slice(0, MOST_SENTENCES).map(bare);
  const turned = turnedBy(
    sentences,
    [request, ...goals].map((pin) => pin.text),
  );
  // Only the person's next message can be the replacement.
  if (free === by || turned === 'given up') standing.free = turned === 'given up' ? by : null;
  if (turned === 'replaced' || (turned === 'no' && free === by && !isAside(sentences)))
    replace(standing, request, message);
  else if (sentences.some((sentence) => GOAL.test(sentence))) addGoal(standing, message);
}

function replace(standing: Standing, request: Pin, message: Omit<Pin, 'why'>): void {
  const own = [request, ...standing.goals].filter((pin) => pin.by === message.by);
  for (const pin of own) standing.replaced.set(pin.seq, message.seq);
  standing.goals = standing.goals.filter((pin) => !own.includes(pin));
  if (own.includes(request)) standing.request = { ...message, why: 'request' };
  else addGoal(standing, message);
  standing.free = null;
}

function addGoal(standing: Standing, message: Omit<Pin, 'why'>): void {
  standing.goals = [...standing.goals, { ...message, why: 'goal' as const }].slice(-MOST_GOALS);
}

/** Whether a message only asks or describes something and gives no work. */
function isAside(sentences: readonly string[]): boolean {
  const first = (sentences[0] ?? '').replace(/^(?:alright|ok(?:ay)?|well|so|fine)[\s,.!]+/iu, '');
  return /[?？]$/.test(sentences.at(-1) ?? '') || TELLS.test(first) || lettersIn(first) < LEAST_LETTERS;
}
