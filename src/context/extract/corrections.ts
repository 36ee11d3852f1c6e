import type { Saying } from '../../events/index.ts';
import { bare, sentencesOf, withoutEnd } from '../text/cut-text.ts';
import { CONSTRAINT } from './lexicon.ts';
import { MOST_PER_EVENT, shownDemand, isDemand, isTelling } from './demands.ts';
import { addSaying, authorOf, keyOf, type Sayings } from './spoken-text.ts';

/**
 * Corrections: how a person's newer words change their older demands. An older demand is removed only if the newer sentence is
 * about this demand alone and withdraws it (*English is fine*, *you may drop that table now*), or if it names its value as
 * wrong (*not 8080: 9090*). Otherwise both stay, the newest last, because a lost ban is worse than a superfluous one. Nobody
 * can withdraw a demand of another person.
 */
const edged = (words: string) => String.raw`(?<![\p{L}\p{N}_])(?:${words})(?![\p{L}\p{N}_])`;

const CHANGES = new RegExp(
  `${edged(
    [
      String.raw`^(?:no|nope|nein|non|não|нет|nee|nie|hayır|không)(?=\s*[,.:;!–—])|actually|sorry|correction|correct(?:ing)? (?:that|myself)|i meant|i mean|make (?:that|it)|change (?:that|it|the)|instead(?: of)?|rather than|after all|on second thought|scratch that|from now on|now|again|any ?more|no longer|meanwhile|updated?`,
      String.raw`doch|eigentlich|sondern|stattdessen|statt|anstatt|korrektur|ich meinte|jetzt|wieder|nicht mehr|ab jetzt|nun`,
      String.raw`finalement|en fait|plutôt|au lieu d[eu]|pardon|je voulais dire|maintenant|désormais|de nouveau|à nouveau|ne plus`,
      String.raw`en realidad|mejor|perdón|corrección|quise decir|ahora|en (?:vez|lugar) de|ya no|otra vez|sino|al final`,
      String.raw`na verdade|melhor|desculp[ae]|correção|quis dizer|agora|em vez de|já não|de novo|mas sim|afinal`,
      String.raw`in realtà|anzi|meglio|scusa(?:te)?|correzione|intendevo|adesso|ora|invece(?: di)?|non più|di nuovo|bensì`,
      String.raw`на самом деле|лучше|вместо|извини(?:те)?|точнее|теперь|снова|больше не|всё-таки|все-таки|поправка|а не`,
      String.raw`eigenlijk|toch|in plaats van|nu|aslında|yerine|artık|właściwie|jednak|zamiast|teraz|thay vì|bây giờ|بدلا|الآن|במקום|עכשיו|בעצם|अब|बजाय`,
    ].join('|'),
  )}|^不|^别|不是|而是|改成|改为|改為|改用|现在|現在|其实|其實|更正|还是|還是|^いや|^いいえ|ではなく|じゃなく|やっぱり|やはり|訂正|今は|もう|변경|아니라|아니요|대신|이제`,
  'giu',
);
const ALLOWS = new RegExp(
  `${edged(
    [
      String.raw`(?:is|are|would be|it['’]s|['’]s) (?:now |also |perfectly |totally |all )?(?:fine|ok|okay|allowed|permitted|possible|alright|right|acceptable|welcome|good)(?: (?:now|again|too|with me|by me|for me))?|you (?:may|can|could|are allowed to|are free to)(?! (?:not|only))|we (?:may|are allowed to|are free to)(?! (?:not|only))|feel free to|go ahead and|no need to avoid|i don['’]t mind|(?:does not|doesn['’]t|no longer) (?:apply|applies|hold|holds|matter|need)|lift(?:ed)?|drop (?:the )?(?:rule|ban|limit|requirement)|ignore (?:the|what|my)|forget (?:the rule|the limit|what)|is gone|off the table`,
      String.raw`(?:ist|sind|wäre|geht) (?:jetzt |auch |doch |nun )?(?:in ordnung|ok|okay|erlaubt|gut|möglich|wieder erlaubt)|(?:du|ihr|sie|wir) (?:darfst|dürft|dürfen|kannst|könnt|können)|(?:darf|dürfen|kann|können)(?! nicht)|gilt nicht mehr|entfällt`,
      String.raw`(?:est|sont) (?:maintenant |aussi )?(?:permise?s?|autorisée?s?|possible|bon|acceptable|d['’]accord|ok)|(?:tu peux|vous pouvez|on peut)|ça (?:me )?(?:va|convient)|me va|ne s['’]applique plus|convient`,
      String.raw`(?:está|están|es|son) (?:bien|permitid[oa]s?|ok|posible)|(?:puedes|pueden|podéis|podemos|se puede)|ya no (?:aplica|vale)|vale|me parece bien`,
      String.raw`(?:está|estão|é|são) (?:bem|bom|permitid[oa]s?|ok|liberad[oa]s?)|(?:pode|podem|podes|podemos)|já não vale|tudo bem`,
      String.raw`(?:va|vanno) bene|(?:è|sono) (?:permess[oaie]|consentit[oaie]|ok)|(?:puoi|potete|si può|possiamo)|non vale più`,
      String.raw`можно|разреш\p{L}*|подойд[её]т|подходит|больше не (?:действует|нужно)|mag(?: weer| wel| nu)?|is prima|is goed|olabilir|artık serbest|được rồi|wolno|można|może być`,
    ].join('|'),
  )}|也?(?:可以|没问题|沒問題|行)(?:了|的)?|允许|允許|不用再|(?:ても|でも|で)?(?:いい|大丈夫|よい|構いません)(?:です|よ)*|許可(?:します)?|괜찮|해도 ?(?:됩니다|돼)|사용 가능|يمكن|لا بأس|مسموح|מותר|בסדר|אפשר|ठीक है|सकते`,
  'giu',
);
/** Precedes a value that no longer holds: `not 8080`, `instead of 8080`. */
const INSTEAD_OF =
  /(?:^|[^\p{L}\p{N}])(?:not|instead of|rather than|nicht|(?:an)?statt|pas|au lieu d[eu]|no(?=\s+\S*\p{N})|en (?:vez|lugar) del?|não(?!\s*,)|em vez d[eoa]s?|non(?!\s*,)|invece (?:di|del|della)|не|вместо|niet|in plaats van|nie|zamiast|değil|不是|ではなく|아니라)[\s,:]*(?:(?:in|on|at|the|to|auf|an|der|die|das|le|la|el|en|em|o|a|il|в|на)\s+){0,2}([\p{L}\p{N}][\p{L}\p{N}_./:-]*)/giu;
/** Follows a value that no longer holds: `8080ではなく9090`, `8080 yerine`. */
const IS_NOT = /([\p{L}\p{N}_./-]{1,40}?)\s?(?:ではなく|じゃなくて?|yerine|değil|아니라|대신|के बजाय)/giu;
const NEGATED = new RegExp(
  `${edged(String.raw`not|never|no|nobody|nothing|without|avoid|stop|n['’]t|\p{L}+n['’]t|forbidden|cannot|nicht|nie|niemals|kein\p{L}*|pas|jamais|interdit\p{L}*|nunca|jamás|não|non|mai|не|никогда|нельзя|niet|geen|nooit|asla|không|đừng|لا|אל|אסור|मत|prohibid[oa]s?|vietat[oa]|proibid[oa]s?|verboten`)}|不要|不得|不能|不可|禁止|别|勿|ない|禁|마세요|금지`,
  'iu',
);
const DENIALS = new RegExp(NEGATED.source, 'giu');
/** Permits a matter in general and not a single action: *English is fine*. */
const MATTER_IS_FINE =
  /(?<![\p{L}\p{N}_])(?:is|are|ist|sind|est|sont|está|están|é|são|è|sono|va|vanno|es|son|можно)(?![\p{L}\p{N}_])|也(?:可以|行)|(?<![んい])でも(?:いい|大丈夫)|도 괜찮/iu;
/** Describes a state and permits nothing: `The backups are fine`. */
const TELLS_STATE =
  /^(?:and |but |so )?(?:the|my|our|your|this|that|these|those|die|der|das|les?|la|el|los|las|os?|as?|il|lo|i|gli|de|het)(?!\p{L})[^,]{0,80}(?:fine|ok|okay|good|right|ordnung|gut|bien|bem|bom|bene|vanno|prima)(?!\p{L})/iu;
/** A ban with a condition, which is not itself forbidden: `never merge without two approvals`. */
const CONDITIONAL = new RegExp(
  `${edged('without|unless|until|before|except|ohne|bevor|bis|außer|sans|avant|sauf|sin|antes|hasta|salvo|sem|até|senza|prima|finché|без|пока|кроме|zonder|voordat|tenzij')}|除非|之前|なしに|前に|없이|전에`,
  'iu',
);
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
  return sentence.search(CHANGES) !== -1 || sentence.search(ALLOWS) !== -1;
}

/** Whether a sentence corrects older demands of its author. Removes these if the correction is certain. */
function revises(list: Sayings, sentence: string, speaker: Omit<Saying, 'text'>): boolean {
  const isPermission = sentence.search(ALLOWS) !== -1;
  const own = ownEntries(list, speaker);
  if (own.length === 0) return false;
  const said = termsOf(sentence);
  if (said.values.size === 0 && isTelling(sentence)) return false;
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
  const denied = [...text.matchAll(INSTEAD_OF), ...text.matchAll(IS_NOT)].map((match) =>
    plain(match[1] ?? ''),
  );
  const about = own.filter((entry) => {
    const { values, words } = termsIn(entry);
    return denied.some((word) => values.has(word) || (!COMMON.test(word) && words.has(stem(word))));
  });
  for (const entry of about) if (!isBan(entry.text)) list.delete(keyOf(entry));
  return about.length > 0;
}

interface Terms {
  /** Numbers and words with a digit. */
  values: ReadonlySet<string>;
  /** Stems of the words that say what it is about. */
  words: ReadonlySet<string>;
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
  if (NEGATED.test(sentence.replace(CHANGES, ' '))) return false;
  if (isPermission) return shared > 0 && missed <= mayMiss(sentence, about) && !CONDITIONAL.test(entry.text);
  // A ban ends when its author orders exactly what it forbids.
  return shared > 1 && missed === 0 && more === 0;
}

/**
 * Number of words of a rule that a permission need not name. A permission for a single action must name them all to end the
 * rule: *you can deploy now* does not end *never deploy on Fridays*.
 */
function mayMiss(sentence: string, { entry, sameValue, isSameEnd }: Compared & { entry: Saying }): number {
  if (!MATTER_IS_FINE.test(sentence)) return 0;
  if (DENSE.test(entry.text)) return Infinity;
  if (TELLS_STATE.test(sentence)) return sameValue ? 1 : 0;
  return isSameEnd ? Infinity : 1;
}

/** Whether a demand forbids something. *No, not 8080: 9090* corrects a value and forbids nothing. */
function isBan(text: string): boolean {
  const isChange = text.search(CHANGES) === 0;
  return NEGATED.test(isChange ? text.replace(CHANGES, ' ').replace(INSTEAD_OF, ' ') : text);
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
  const words = [...newer.words].filter((word) => older.words.has(word)).length;
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
    isSameEnd: last !== undefined && newer.words.has(last),
    left: newer.words.size - words,
    more: newer.values.size - values.length,
    missed,
    sameShape,
  };
}

const TERMS = new WeakMap<Saying, Terms>();

function termsIn(entry: Saying): Terms {
  const terms = TERMS.get(entry) ?? termsOf(entry.text);
  TERMS.set(entry, terms);
  return terms;
}

const WORD = /[\p{L}\p{N}][\p{L}\p{N}_./:-]*/gu;
const DENSE = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]/u;
/** Words that occur in many demands and do not say what one is about. */
const COMMON =
  /^(?:please|need|needs|want|that|this|these|those|with|from|into|about|there|here|what|when|which|then|than|have|has|been|being|will|would|could|can|may|them|they|your|yours|mine|our|ours|the|and|but|for|are|you|too|also|just|only|always|never|must|should|shall|use|used|using|any|all|some|said|rule|limit|bitte|eine?[nmrs]?|und|oder|auch|der|die|das|den|dem|mit|für|auf|ist|sind|darf|dürfen|soll|muss|nur|immer|niemals|les|des|une|dans|pour|avec|est|sont|vous|sur|las|los|una|para|con|por|está|solo|siempre|nunca|uma|para|com|são|sempre|apenas|della|delle|sono|per|sempre|solo|это|для|как|что|только|всегда)$/iu;

function termsOf(text: string): Terms {
  const values = new Set<string>();
  const words = new Set<string>();
  const rest = parted(text.slice(0, LONGEST))
    .replace(ALLOWS, ' ')
    .replace(CHANGES, ' ')
    .replace(CONSTRAINT, ' ')
    .replace(DENIALS, ' ');
  for (const [written] of rest.matchAll(WORD)) {
    const word = plain(written);
    if (/\p{N}/u.test(word)) values.add(word);
    else if (DENSE.test(word))
      for (let at = 0; at + 1 < word.length; at += 1) words.add(word.slice(at, at + 2));
    else if (word.length > 2 && !COMMON.test(word)) words.add(stem(word));
  }
  return { values, words };
}

/** Inserts spaces between digits or Latin letters and adjacent characters of scripts without spaces. */
function parted(text: string): string {
  return text.replace(
    /(?<=[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}])(?=\w)|(?<=\w)(?=[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}])/gu,
    ' ',
  );
}

const STEM = 4;

function stem(word: string): string {
  return word.slice(0, STEM);
}

function plain(word: string): string {
  return withoutEnd(word.toLowerCase(), '.:/-');
}

/** The form of a value: `8080` and `9090` have the same form, `v2` and `v3` another. */
function formOf(value: string): string {
  return value.replace(/\p{N}+/gu, '0');
}
