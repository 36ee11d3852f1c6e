import { bare, capped, sentencesOf } from '../text/cut-text.ts';
import { DEMAND_WORDS } from './demand-words.ts';
import { CONSTRAINT, isChatter } from './lexicon.ts';

/**
 * Demands: obligations, prohibitions, limits, preferences and refusals, in their speaker's words. Small talk uses the same
 * words (*I always love it*, *that must have been great*), so a word alone is not enough. It also matters who is to act, and
 * whether the sentence describes or demands. Each test is a plain pattern over one sentence or clause, so it takes linear time.
 */
const MAX_CONSTRAINT = 320;
/** Maximum demands taken from one event: all of a page of rules, but not of a pasted book. */
export const MOST_PER_EVENT = 80;
/** Characters judged of a sentence. A longer one is data. */
const MOST_JUDGED = 1_200;

const words = (pattern: string) => new RegExp(`(?<![\\p{L}\\p{N}_])(?:${pattern})(?![\\p{L}\\p{N}_])`, 'iu');
const at = (pattern: string) => new RegExp(`^(?:${pattern})(?![\\p{L}\\p{N}_])`, 'iu');

/** Phrases by which an agent reports a person's demand. */
const QUOTES_A_PERSON =
  /\b(?:you(?:['’]ve| have)? (?:asked|said|told|want|wanted|prefer|preferred|requested|specified|mentioned)|the (?:user|customer|client)|as (?:you )?(?:requested|instructed)|your (?:preference|instruction|request|constraint|requirement)s?|per your|sie (?:sagten|wollten|möchten)|vous (?:avez|voulez)|usted|você|lei ha|вы (?:сказали|просили|хотели))(?![\p{L}\p{N}_])|(?:您|你)(?:说|要求|希望)|とのこと|ご希望/iu;
const QUESTION = /[?？؟]["'”’»)]*$/;
const EXCLAIMED = /[!！]["'”’»)]*$/;
/** Lines of code and logs, which contain such words without demanding anything. */
const CODE = /[;{}]\s*$|\\[nrt"]|^[+-]?\s*(?:const|let|var|return|import|\/\/)\s/;

/** The line of an attachment, and the words on a thing, as on a sign: they are not the speaker's own. */
const SHOWN =
  /^\[(?:image|file|text): [^\]]*\]$|^(?:the|this|that|my|his|her|our|their|an?|one) (?:\p{L}+ ){0,2}(?:sign|poster|banner|shirt|mug|card|sticker|plaque|painting|mural|quote|tattoo)s? (?:\p{L}+ ){0,3}(?:says?|said|reads?)[:,]? ["“'‘«]/iu;

/** The demands in a text. In an agent's text only reported demands of a person count. */
export function constraintsOf(text: string, byAgent: boolean): string[] {
  const found: string[] = [];
  for (const line of sentencesOf(text)) {
    const sentence = bare(line);
    if (sentence.length < 4 || !(byAgent ? isReport(sentence) : isDemand(sentence))) continue;
    found.push(shownDemand(sentence));
    if (found.length === MOST_PER_EVENT) break;
  }
  return found;
}

/** A demand as lists show it. */
export function shownDemand(sentence: string): string {
  return capped(sentence, MAX_CONSTRAINT, KEPT);
}

/** Whether an agent's sentence reports a person's demand. Questions and notes to itself do not. */
function isReport(sentence: string): boolean {
  return (
    QUOTES_A_PERSON.test(sentence) &&
    CONSTRAINT.test(sentence) &&
    !QUESTION.test(sentence) &&
    !CODE.test(sentence)
  );
}

export function isDemand(sentence: string): boolean {
  if (CODE.test(sentence) || SHOWN.test(sentence)) return false;
  const judged = sentence.slice(0, MOST_JUDGED);
  if (QUESTION.test(judged)) return ASKED.test(judged);
  return isEnglishDemand(judged) || (!ENGLISH.test(judged) && isDemandElsewhere(judged));
}

const ASKED =
  /(?:can|could|would) (?:you|we) (?:please )?(?:not|never|only|always|stop|avoid|keep|make sure|refrain)(?!\p{L})|(?:können|könnt|kannst|würden) (?:sie|ihr|du) (?:bitte )?(?:nicht|kein|nur|immer)|(?:pouvez|pourriez|peux)[- ](?:vous|tu) (?:ne |éviter|toujours)/iu;

const ENGLISH = words(
  String.raw`the|and|to|this|that|you|my|with|have|for|it['’]s|i['’]m|don['’]t|can['’]t|never|always|must|should|not|only|please|your|like|what|how|would|be|been|from`,
);

/** Words at the beginning of a clause that are not its subject. */
const LEAD =
  /^(?:(?:please|kindly|just|also|and|but|so|then|again|remember(?: to|,)?|note(?: that)?|ok(?:ay)?|however|still|actually|important|one more thing|for (?:now|this)|in (?:general|any case))[\s,:!]+|(?:thanks|thank you|hi|hello|hey)[,:!]+\s*){0,4}/iu;
const CLAUSES = /[,;:，；：、—–]|\s-\s|\s(?:but|and|because|since|then|until now)\s/iu;

/** Verbs of obligation. Behind an article `need` is a noun. */
const MODAL = words(
  String.raw`must(?:n['’]?t| not)?(?!-)|shall(?: not)?|may (?:not|only)|can only|cannot|can['’]?t|(?:is|are) (?:not |only )?(?:to be|allowed|permitted|required|forbidden|acceptable)|(?:has|have) to|(?<!(?:^|\s)(?:the|a|this|that|any|every|my|our|your|their|his|her)\s)needs? to|should(?:n['’]?t| not)?`,
);
/** Follows a modal verb that expresses a guess or the past: `must have been`, `must be so proud`, `should have gone`. */
const GUESSED =
  /^(?:['’]ve|of|have (?:been|felt|had|gone|taken|made|given|seen|known|got|done|put|cost|come|a (?:lot|blast|ton)|unreal|so|such|fun|\p{L}+ed(?!\p{L}))|(?:still |also |all )?be (?:so|very|really|such|quite|pretty|super|incredibly|truly|nice|fun|great|hard|tough|amazing|awesome|exciting|excited|proud|happy|thrilled|lovely|cool|interesting|difficult|incredible|unbelievable|raw|[\p{L}]+(?:ing|ful)(?=[.!,]?$)|a (?:lot|great|nice|real|big|tough|hard|good|blast|wonderful)|(?:feel|hav|miss|do|gett|enjoy)ing)|feel|mean|miss|love|seem|look|admit|say|confess|agree|wait|\p{L}+ (?:\p{L}+ )?so (?:much|many))(?!\p{L})/iu;
/** Subjects that mean the speaker, or nobody in particular. */
const OWN =
  /(?:^|\s)(?:a|if you|when you|sometimes you|(?:don|doesn|didn)['’]t|no|might|would|could|(?:i|we|he|she|it|they|you)(?:['’]ll| will)(?: \p{L}+)?|(?:i|who)(?: (?:totally|definitely))?(?: (?:also|really|actually|just|still|only|do))?|there|what|where|i['’]m|people|(?:my|his|her) \p{L}+)$/iu;
const GROUP = /(?:^|\s)we(?: all| both| really| just| totally| definitely)?$/iu;
const VAGUE = /(?:^|\s)(?:it|that|this|they|you|you guys|those|these)$/iu;
const CANNOT_IDIOM =
  /^(?:wait|believe|imagine|remember|recall|see|find|tell|think|help|thank|hear|beat|deny|agree|let|be (?:right|beat)|go wrong|picture|live|stand|stop|get (?:enough|over)|even|ever|argue|complain|say|forget|seem|express|lose|fail|just|quite|really|explain|describe|count)(?!\p{L})/iu;
/** Inabilities of the speaker that bind others: `I can't eat nuts`, `we can't use PHP`. */
const OWN_LIMIT =
  /^(?:accept|allow|approve|eat|drink|have|use|pay|afford|fly|travel|meet|attend|come (?:on|before|after)|be (?:there|available)|work (?:on|before|after|with)|ship|sign|do (?:it|that|this|any|mon|tues|wednes|thurs|fri|satur|sun))/iu;

const BANNED = at(
  String.raw`never|let['’]?s (?:not|never|only|always|stick)|do not|don['’]?t|not (?:before|after|until|unless|without|more than|later than|on|to)|avoid|refrain|stop \p{L}+ing|no more \p{L}+|no \p{L}+(?: \p{L}+){0,3} (?:before|without|until|unless|after|in|on|at|to|for|from|than|please|leaves?|goes|may|can|shall|must|is to be|enters?|uses?|sees?|gets?|runs?|changes?)|(?:nothing|nobody|no one|none)(?: of \p{L}+ \p{L}+)? (?:may|can|shall|is to|leaves|goes|gets|must|should)`,
);
/** Past tenses that are no participle: `never saw` tells of something, `never sent` may forbid it. */
const PAST_ALONE =
  'saw|came|went|did|took|gave|knew|wrote|spoke|ate|drank|drove|began|broke|chose|flew|forgot|forgave|grew|rode|rang|rose|ran|sang|swam|woke|wore|became|threw|drew|shook|stole|froze';
const BANNED_IDIOM = at(
  String.raw`(?:never|do not|don['’]?t) (?:worry|mind|give up|quit|stop|forget|hesitate|be (?:shy|sad|afraid|scared|discouraged|silly|sorry|too|hard|so|such|surprised)|get (?:me|too|discouraged)|let (?:anything|it|them|that|this|anyone|fear|your|go|yourself|me|us|the)|lose|sweat|stress|feel|doubt|underestimate|know|think|remember|recall|understand|see|have|miss|had|been|was|were|did|could|would|seen|heard|thought|felt|knew|took|got|made|went|gone|done|met|tried|say never|ever|really|even|\p{L}+ed|we|you|i|they)|never (?:${PAST_ALONE}|\p{L}*[^\P{L}s]s)|no (?:problem|need|doubt|way|idea|wonder|rush|pressure|matter)`,
);
const ORDERED = at(
  String.raw`(?:only|always|exclusively|strictly) (?!(?:\p{L}+ing|a|an|the|in|if|fun|nice|great|good|happy|glad|amazing|love|ready|here|there|been|had|thing|problem|time|so|wanted|just|one|you|i|we|us)(?!\p{L}))\p{L}+|(?:ensure|make sure|be sure)(?: that)? (?:the|all|no|nobody|no one|every|each|nothing|our|its|it|only|they|never|not)|(?:keep|remain|leave)(?! in)(?: \p{L}+){0,6} (?:below|under|within|above|in|at|untouched|as (?:it|they)|alone|off|out|private|confidential|short|unchanged|free)|use (?!to)(?:\p{L}+ ){1,4}(?:everywhere|throughout|only|instead)|(?:use|treat) (?!(?:it as|your|me|him|her|to|up|my)(?!\p{L}))\p{L}+|(?:answer|reply|respond|write|speak|use|sign|format|deploy|send|log|store)(?: \p{L}+){0,5} (?:only|in \p{L}+|at most|without|unless|no more than|except)`,
);
const PLEASED = words(
  String.raw`please,? (?:do )?(?:not|never|only|always|don['’]?t|no|use|answer|reply|respond|write (?:in|all|every\p{L}*|only|short\p{L}*)|speak|keep|leave|avoid|stop|ensure|make sure|refrain|limit|stick|stay)`,
);
const SURE = words(
  [
    String.raw`from now on|going forward|at all times|under no circumstances?|by no means|no (?:later|earlier|sooner|more|less|fewer) than|hard (?:limit|requirement|deadline|constraint)|and no later|(?:strictly|absolutely) (?:no|not|forbidden)`,
    String.raw`mandatory|forbidden|prohibited|off[- ]limits|(?:i['’]?m|am|is|are) allergic|not (?:allowed|acceptable|permitted|negotiable)|non-negotiable`,
    String.raw`(?:i|we)(?:['’]d| would)?(?: strongly| much)? prefer(?! to (?:be|stay|play|go|watch|read|spend)(?!\p{L}))|(?:i|we)(?:['’]d| would) rather (?:not|you|have|use|keep|pay|get)|i (?:will not|won['’]t) (?:accept|pay|sign|approve|agree|take|allow|use|buy|work)|(?:i|we) (?:don['’]t|do not) want (?!to(?!\p{L})|future|people|kids|anyone to)(?:\p{L}+)|(?:i|we) (?:don['’]t|do not) want to (?:share|pay|use|cancel|receive|see|have|sign|buy|be (?:called|contacted|transferred|billed|charged))`,
    String.raw`(?:important|essential|crucial|vital) that (?!(?:we|you|i|they) (?:feel|have|love|are)(?!\p{L}))\p{L}+|hands off|(?:i|we)(?:['’]d| would)(?: \p{L}+)? (?:like|want|prefer|appreciate it if|be (?:glad|grateful|happy) if) you (?:not|never|only|always|didn['’]t|did not|to (?!join|meet|come|know|see|try|be)\p{L}+)|(?:great|good|nice|better|best|helpful) if (?:you|we|nobody|no one) (?:never|didn['’]t|did not|only|always|kept|used|avoided|left)`,
  ].join('|'),
);
const WANTED = words(
  String.raw`(?:i|we)(?:['’]d like| would like| want| need| require) (?:the|all|every|each|no|our|its|it|any|texts?|everything)(?: \p{L}+){0,5} (?:to be|in|by|as|before|without|under|below|within|only|done|kept|written|signed)`,
);
/** Words that make a clause a demand if it is not about a person. */
const LIMIT = words(
  String.raw`always(?! (?:there|here|been|good|fun|nice|great|a|an|the|ready|so|hear|\p{L}+ing)(?!\p{L}))|never(?!-)|only|exclusively|at (?:least|most)|unless|without|no longer|instead|everywhere|(?:below|under|within|up to|over|above|by) [$€£¥]?\d[\d.,]*|(?:budget|limit|maximum|minimum|deadline|requirement|constraint|condition|rule|policy)s?(?: (?:is|are|of)(?! \p{L}+ed)|:)|max(?:imum)?\.? [$€£¥]?\d|prefer(?:red|ably)|(?:is|are) required`,
);
const LABEL =
  /^(?:rule|policy|constraint|requirement|condition|limit|budget|deadline|note|important)s?(?: \d+)?: ?\S/iu;
/** Beginnings of sentences that describe somebody: a first or third person with a verb, a past tense, or a feeling. */
const TELLS_OF =
  /^(?:i(?:['’](?:m|ve|ll|d))?|we['’](?:ve|re|ll)|we (?:were|had|always|never|just|all|only|love|have|got|went|did|are)|he|she|they|it['’]s|it (?:is|was|has|feels|makes|made|reminds?|kills|takes|showed|means|['’]s)|that['’]s|that (?:was|is)|this (?:was|is|one)|there(?:['’]s| is| are| was)|you(?:['’](?:re|ve|ll)| always| never| only| have| are| were| guys)|my|his|her|so|such|what|how|wow|aw+|yeah|yes|haha|can['’]?t|without|instead of \p{L}+ing|and instead|try|keep in touch|your|always (?:here|been|fun|nice|good|great)|never (?:saw|had|been|thought|knew|seen|heard)|sometimes|last|when|if only|not only|as always|thanks|here['’]s|taking|sharing|being|seeing|having|trying|finding|good|love|glad|nice|cool|yep|who|dance|life|people)(?!\p{L})/iu;
const SELF = words(String.raw`i|i['’]\p{L}+|me|my|myself`);
const PAST = words(
  String.raw`was|were|had|went|did(?:n['’]t)?|felt|made|took|got|said|thought|knew|saw|came|found|been|loved|started|wanted|used to|helped|showed|reminded|decided|tried|gave|never (?:\p{L}+ed|${PAST_ALONE})|always \p{L}+ed`,
);
const FELT = words(
  String.raw`amazing|awesome|love[ds]?|loving|fun|happy|happiness|proud|great|wonderful|beautiful|inspir\p{L}+|special|joy\p{L}*|dreams?|hearts?|smiles?|feel(?:s|ing|ings)?|excit\p{L}+|sweet|cool|lovely|grateful|thankful|bless\p{L}*|glad|hug\p{L}*|miss(?:ed|ing)? (?:you|him|her|it|them|my)|friends?|famil(?:y|ies)|memor(?:y|ies)|hopes?|hopefully|support(?:ive|ing)?|fulfilling|rewarding|relax\p{L}*|nice|encourag\p{L}+|passion\p{L}*|journey|tough|buddy|enjoy\p{L}*|usually|often|gonna|wanna|kinda|gotta|lol|myself|yourself|kids|adventure|comfort\p{L}*`,
);
/** Words of uncertainty, and about the speaker's own plans. Advice and wishes bind nobody. */
const HEDGED = words(
  String.raw`maybe|perhaps|i (?:guess|feel|hope|wish|bet|wonder|suppose)|probably|might|reminds?|makes? (?:me|you|us)|feels? like|it['’]s like|i think i|i think we should|i['’]ll|i['’]m (?:going|trying|sure)|someday`,
);
const REFUSED =
  /^(?:no|nope|nein|non|não|нет|wait,? no)\s*[,:.–—-]+\s*(?:not (?!a |an |really|yet|at all|much|sure|exactly|since)|never (?!had|been|heard|seen|tried|did)|do(?:n['’]t| not) (?!worry|think)|use|make it|keep|take|leave|stop|please|only|rather|instead|the|it (?:must|has to|should|stays)|i (?:will not|won['’]t|(?:really )?don['’]t want|want|need|prefer|meant)|i['’]d|we (?:will not|won['’]t|don['’]t|want|need|can['’]t|use)|nicht|kein|bitte|ich (?:will|möchte)|wir|pas|plutôt|je|mejor|não|melhor|meglio|не|лучше|\d+)(?!\p{L})/iu;

function isEnglishDemand(sentence: string): boolean {
  const isLoud = EXCLAIMED.test(sentence);
  const hasFeeling = FELT.test(sentence);
  if (isPlainDemand(sentence) && !(isLoud && hasFeeling)) return true;
  const isCasual = isLoud || hasFeeling || HEDGED.test(sentence);
  const clauses = sentence.split(CLAUSES).map((clause) => clause.trim().replace(LEAD, ''));
  const tells = TELLS_OF.test(clauses[0] ?? '');
  if (clauses.some((clause) => isOrder(clause, { isCasual, tells }))) return true;
  if (isCasual) return false;
  if (WANTED.test(sentence)) return true;
  if (tells || PAST.test(sentence)) return false;
  return clauses.some((clause) => LIMIT.test(clause) && !isPersonal(clause));
}

function isPlainDemand(sentence: string): boolean {
  if (SURE.test(sentence)) return !PROMISED.test(sentence);
  return isRefusal(sentence) || LABEL.test(sentence) || PLEASED.test(sentence);
}

const MOST_REFUSED = 200;

function isRefusal(sentence: string): boolean {
  return sentence.length <= MOST_REFUSED && REFUSED.test(sentence);
}

/** How the speaker feels about what follows. */
const FEELING = /^(?:thankfully|luckily|fortunately|unfortunately|sadly|happily),?\s+/iu;

/** Whether a sentence describes people or feelings and orders nothing. */
export function isTelling(told: string): boolean {
  const sentence = told.replace(FEELING, '');
  if (EXCLAIMED.test(sentence) || FELT.test(sentence) || HEDGED.test(sentence)) return true;
  return TELLS_OF.test(sentence) || SELF.test(sentence) || PAST.test(sentence);
}

/** Whether a clause is about the speaker or another person. */
function isPersonal(clause: string): boolean {
  return TELLS_OF.test(clause) || SELF.test(clause);
}

function isOrder(clause: string, { isCasual, tells }: { isCasual: boolean; tells: boolean }): boolean {
  if (BANNED.test(clause)) return !BANNED_IDIOM.test(clause) && !(isCasual && FELT.test(clause));
  if (!isCasual && (tells ? CUSTOM.test(clause) : ORDERED.test(clause))) return true;
  const modal = MODAL.exec(clause);
  if (!modal) return false;
  const [verb] = modal;
  const subject = clause.slice(0, modal.index).trim();
  const rest = clause.slice(modal.index + verb.length).trim();
  return !GUESSED.test(rest) && isObliged({ verb, subject, rest }, isCasual);
}

/** Customs of a group, which bind everybody who works for it: `we never …`. */
const CUSTOM = at(
  String.raw`we (?:never|always|only|don['’]t|do not) (?!just|even|really|have|know|think|see|get|go|want|mind|had|feel|\p{L}+ed)\p{L}+`,
);

interface Obliged {
  verb: string;
  subject: string;
  rest: string;
}

/** Whether the clause obliges somebody or something other than the speaker. */
function isObliged({ verb, subject, rest }: Obliged, isCasual: boolean): boolean {
  if (/^can(?:not|['’]?t)/iu.test(verb)) return !isCasual && isImpossible(subject, rest);
  const isBan = BAN.test(verb) || BAN_BEHIND.test(rest);
  if (isCasual) return isDemandAloud({ verb, subject, rest }, isBan);
  if (subject === '') return /^must/iu.test(verb) && !/^be(?!\p{L})/iu.test(rest);
  if (OWN.test(subject)) return /^(?:must|need)/iu.test(verb) && OWN_NEED.test(rest);
  return isBan || (!PAST.test(subject) && !isAdvice({ verb, subject, rest }));
}

/** In a sentence with feeling, only a ban, or an obligation of a thing, is a demand. */
function isDemandAloud({ verb, subject, rest }: Obliged, isBan: boolean): boolean {
  if (!/^(?:must|may|shall)/iu.test(verb) || OWN.test(subject)) return false;
  if (FELT.test(subject) || FELT.test(rest)) return false;
  const isOfMatter = subject !== '' && !VAGUE.test(subject) && !GROUP.test(subject);
  return isBan || (isOfMatter && !/^be(?!\p{L})/iu.test(rest));
}

/** The speaker announces what they are going to do. */
const PROMISED = words(String.raw`i['’]ll|i will (?!not)`);
const BAN = /n['’]?t$|not|only|forbidden/iu;
const BAN_BEHIND = /^(?:never|not|only|always)(?!\p{L})/iu;
const OWN_NEED = /^(?:have|see|receive|approve|sign)(?!\p{L})/iu;

function isImpossible(subject: string, rest: string): boolean {
  if (CANNOT_IDIOM.test(rest)) return false;
  if (subject === '') return false;
  return OWN.test(subject) ? OWN_LIMIT.test(rest) : !/(?:^|\s)(?:he|she|they)$/iu.test(subject);
}

/** Whether the clause is advice among friends, or an obligation of a group without a limit. */
function isAdvice({ verb, subject, rest }: Obliged): boolean {
  if (/^should/iu.test(verb)) return GROUP.test(subject) || (VAGUE.test(subject) && ADVISED.test(rest));
  if (/^must$/iu.test(verb)) return VAGUE.test(subject) && STATE.test(rest) && !RULED.test(rest);
  return (GROUP.test(subject) || /(?:^|\s)you$/iu.test(subject)) && !BOUND.test(rest);
}

const STATE = /^be (?!\p{L}+ed(?!\p{L}))/iu;
const ADVISED = /^(?:be|try|check|see|come|go|watch|read|definitely|totally|give|join|take|get)(?!\p{L})/iu;
const RULED =
  /^be (?:in|at|on|under|below|within|no|valid|\d|unique|signed|written|sent|done|kept|set|paid|built|shown|run|put|left|readable|available|the same|empty)(?!\p{L})/iu;
const BOUND = /(?:^|\s)(?:by|before|until|within|without|only|at (?:least|most))(?!\p{L})/iu;

interface Words {
  strong: RegExp;
  weak: RegExp;
  tells: RegExp;
}

/** The words of all languages in one pattern, because a text rarely contains demanding words of another language. */
const ELSEWHERE: Words = {
  strong: joined('strong'),
  weak: joined('weak'),
  tells: joined('tells'),
};

function joined(list: 'strong' | 'weak' | 'tells'): RegExp {
  const languages = Object.values(DEMAND_WORDS);
  const spaced = languages.filter(({ unspaced }) => !unspaced).flatMap((each) => each[list]);
  const unspaced = languages.filter((each) => each.unspaced).flatMap((each) => each[list]);
  return new RegExp(
    `(?<![\\p{L}\\p{N}_])(?:${spaced.join('|')})(?![\\p{L}\\p{N}_])|${unspaced.join('|')}`,
    'iu',
  );
}

function isDemandElsewhere(sentence: string): boolean {
  const { strong, weak, tells } = ELSEWHERE;
  if (isRefusal(sentence)) return true;
  if (strong.test(sentence)) return !(EXCLAIMED.test(sentence) && tells.test(sentence));
  return weak.test(sentence) && !tells.test(sentence) && !EXCLAIMED.test(sentence) && !isChatter(sentence);
}

/** Words around which a long sentence is cut. */
const KEPT = new RegExp(`${LIMIT.source}|${MODAL.source}|${ELSEWHERE.strong.source}`, 'iu');
