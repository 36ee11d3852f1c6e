import { type Event, messageText, type Quote } from '../../events/index.ts';
import { isTrustedPerson, type Trusted } from '../people.ts';
import type { Steps } from '../steps.ts';
import { sentencesOf } from './cut-text.ts';
import { CONSTRAINT, REFUSAL } from './lexicon.ts';

/** A stated goal: `Goal: …`, `our goal is …`, in the languages of the lexicon. */
export const GOAL =
  /(?:^|[\s"'*_>#-])(?:(?:the|my|our|your|new|main|overall|final|das|unser|mein|neues?|l['’]|notre|mon|el|nuestro|mi|o|nosso|meu|il|nostro)\s)?(?:goals?|objectives?|deadline|mission|ziele?|frist|objectifs?|but|objetivos?|meta|obiettiv[oi]|scopo|цель|задача)\*{0,2}(?:\s(?:now|here|jetzt|maintenant|ahora|agora|ora))?(?:\s?[:：=–—]|\s(?:is|are|remains|ist|lautet|est|es|é|è|будет)(?![\p{L}])|\s(?:bleibt)\s)|(?:目标|目標|任务|任務|目的|ゴール)(?:是|は|：|:)|(?<![\p{L}])(?:we|i) (?:need|want|have|must) to (?:ship|release|deliver|launch|finish|publish) \S.{0,80}(?<![\p{L}])(?:by|before|until|on) \S/iu;

/** A goal is given up: what was stated before may leave. */
const REPLACED =
  /(?<![\p{L}])(?:forget (?:that|about|it|the|all|everything)|never mind|scrap (?:that|it|the)|change of plans?|new goal|instead of (?:that|the (?:goal|plan)),? (?:now|we)|vergiss (?:das|es)|planänderung|neues ziel|oublie[zr]? (?:ça|cela|tout)|changement de plan|olvida(?:te|lo)? (?:de )?(?:eso|esto|todo)|olvídalo|esque[cç]e? (?:isso|tudo)|dimentica(?:lo|re)? (?:questo|quello|tutto)?|забудь|забудьте|новая цель)(?![\p{L}])|忘掉|算了|改计划|やめて、|忘れて/iu;

/** Longer texts state their goal in one of their first sentences. */
const MOST_SENTENCES = 40;
const MOST_CHARS = 8_192;
/** Cost of looking at one message, in characters. */
const LOOK = 64;
/** Stated goals in force, the newest. */
const MOST_GOALS = 6;

const GREETING =
  /^(?:hi|hello|hey|hallo|guten (?:tag|morgen)|moin|servus|salut|bonjour|hola|buen[oa]s?(?: d[ií]as| tardes)?|olá|oi|bom dia|ciao|buongiorno|привет|здравствуйте|你好|您好|こんにちは|good (?:morning|afternoon|evening))(?:[\s,!.]+(?:there|all|everyone|team|zusammen|@?[\p{L}\p{N}_-]{1,24}))?[\s!.,。！]*$/iu;

/** Words that only acknowledge. */
const CHATTER =
  /^(?:(?:ok(?:ay|e)?|kk?|yes|yep|yeah|no+pe|sure|noted|got it|understood|thanks?|thank you|thx|cheers|great|nice|cool|perfect|excellent|awesome|fine|good|right|alright|done|continue|go on|go ahead|proceed|please|hm+|ah|oh|lol|haha|wow|so|then|and|very much|a lot|for (?:that|now|the update)|ja|nein|gut|danke|alles klar|weiter|passt|super|merci|oui|d['’]accord|bien|gracias|vale|sí|listo|obrigad[oa]|sim|certo|grazie|va bene|sì|спасибо|да|хорошо|понятно|ладно)(?![\p{L}])[\s,.!…:;)(-]*)+$|^(?:好的?|谢谢|謝謝|明白了?|收到|继续|はい|ありがとう(?:ございます)?|了解(?:です|しました)?|続けて)[\s。！!，,]*$/iu;
const MAX_CHATTER = 60;

/** Whether a message says nothing that would be missed. */
export function isChatter(text: string): boolean {
  const words = text.trim();
  return words.length <= MAX_CHATTER && (CHATTER.test(words) || GREETING.test(words));
}

export function isGoalOrDemand(text: string): boolean {
  return GOAL.test(text) || CONSTRAINT.test(text) || REFUSAL.test(text);
}

/** A message that is kept as long as the conversation lasts, or until its goal is replaced. */
export interface Pin {
  seq: number;
  why: NonNullable<Quote['pinned']>;
}

/**
 * The first request and the stated goals of trusted people, ascending. `pinned` are those of the previous compaction.
 */
export function* pinSteps(events: readonly Event[], pinned: readonly Pin[], trusted: Trusted): Steps<Pin[]> {
  let request = pinned.find(({ why }) => why === 'request') ?? null;
  let goals = pinned.filter(({ why }) => why === 'goal');
  for (const event of events) {
    if (event.kind !== 'message' || event.author.kind !== 'user' || !isTrustedPerson(trusted, event))
      continue;
    const { seq } = event;
    const text = messageText(event.body).slice(0, MOST_CHARS);
    const sentences = sentencesOf(text).slice(0, MOST_SENTENCES);
    yield LOOK + text.length;
    if (sentences.some((sentence) => REPLACED.test(sentence))) goals = [];
    if (request === null && text.trim() !== '' && !isChatter(text)) request = { seq, why: 'request' };
    else if (request?.seq !== seq && sentences.some((sentence) => GOAL.test(sentence)))
      goals = [...goals, { seq, why: 'goal' as const }].slice(-MOST_GOALS);
  }
  return [...(request ? [request] : []), ...goals].toSorted((a, b) => a.seq - b.seq);
}
