import { plainText } from '../text/words.ts';

/**
 * The words for dates in English, German, French, Spanish, Italian, Portuguese and Dutch, in lower case and without
 * accents, as `plainText` returns them. A word that usually means something else in one of the languages is left out.
 */
const MONTHS = [
  'january jan januar janner janvier enero gennaio janeiro januari',
  'february feb februar fevrier febrero febbraio fevereiro februari',
  'march marz mars marzo marco maart',
  'april apr avril abril aprile',
  'may mai mayo maggio maio mei',
  'june jun juni juin junio giugno junho',
  'july jul juli juillet julio luglio julho',
  'august aug aout agosto augustus',
  'september sept sep septembre septiembre settembre setembro',
  'october oct oktober okt octobre octubre ottobre outubro',
  'november nov novembre noviembre novembro',
  'december dec dezember dez decembre diciembre dicembre dezembro',
];

const WEEKDAYS = [
  'sunday sonntag dimanche domingo domenica zondag',
  'monday montag lundi lunes lunedi maandag',
  'tuesday dienstag mardi martes martedi dinsdag',
  'wednesday mittwoch mercredi miercoles mercoledi woensdag',
  'thursday donnerstag jeudi jueves giovedi donderdag',
  'friday freitag vendredi viernes venerdi vrijdag',
  'saturday samstag sonnabend samedi sabado sabato zaterdag',
];

const SEASONS: Record<number, string> = {
  2: 'spring fruhling fruhjahr printemps primavera voorjaar',
  5: 'summer sommer estate verano verao zomer',
  8: 'autumn fall herbst automne otono autunno outono herfst',
  11: 'winter hiver invierno inverno',
};

/** Days by their distance from the speaker's day. */
const DAYS: Record<number, string> = {
  '-2': 'vorgestern anteayer avantieri anteontem eergisteren',
  '-1': 'yesterday gestern ayer ieri ontem gisteren',
  0: 'today tonight heute hoy oggi hoje vandaag',
  1: 'tomorrow demain manana domani amanha',
  2: 'ubermorgen dopodomani overmorgen',
};

type Unit = 'day' | 'week' | 'weekend' | 'month' | 'year';

const UNITS: Record<Unit, string> = {
  day: 'day days tag tage tagen jour jours dia dias giorno giorni dag dagen',
  week: 'week weeks woche wochen semaine semaines semana semanas settimana settimane weken',
  weekend: 'weekend wochenende',
  month: 'month months monat monate monaten mois mes meses mese mesi maand maanden',
  year: 'year years jahr jahre jahren an ans annee annees ano anos anno anni jaar jaren',
};

const NUMBERS: Record<number, string> = {
  1: 'a an one ein eine einem einer einen un une una uno um uma een',
  2: 'two couple zwei deux dos due dois duas twee paar',
  3: 'three few drei trois tres tre drie',
  4: 'four vier quatre cuatro quattro quatro',
  5: 'five funf cinq cinco cinque vijf',
  6: 'six sechs seis sei zes',
  7: 'seven sieben sept siete sette sete zeven',
  8: 'eight acht huit ocho otto oito',
  9: 'nine neun neuf nueve nove negen',
  10: 'ten zehn dix diez dieci dez tien',
};

/** Words for neighbouring units, by the distance from the present one. */
const NEARBY: Record<number, string> = {
  '-1':
    'last past previous letzte letzten letzter letztes vorige vorigen vergangene vergangenen dernier derniere ' +
    'passe passee pasado pasada scorso scorsa passado passada afgelopen',
  0: 'this dieser diese diesen dieses diesem cette este esta questo questa deze dit',
  1:
    'next coming nachste nachsten nachster nachstes kommende kommenden prochain prochaine proximo proxima ' +
    'prossimo prossima volgende',
};

function tableOf(rows: readonly string[] | Record<number, string>): ReadonlyMap<string, number> {
  return new Map(
    Object.entries(rows).flatMap(([number, words]: [string, string]) =>
      words.split(' ').map((word) => [word, Number(number)] as const),
    ),
  );
}

const MONTH_OF = tableOf(MONTHS);
const WEEKDAY_OF = tableOf(WEEKDAYS);
const SEASON_OF = tableOf(SEASONS);
const DAY_OF = tableOf(DAYS);
const NUMBER_OF = tableOf(NUMBERS);
const NEARBY_OF = tableOf(NEARBY);
const UNIT_OF: ReadonlyMap<string, Unit> = new Map(
  Object.entries(UNITS).flatMap(([unit, words]) => words.split(' ').map((word) => [word, unit as Unit])),
);

/** Names of months that are also common words. They count only beside a number or a word of `BEFORE_DATE`. */
const AMBIGUOUS: ReadonlySet<string> = new Set(
  'may march mars mai mei jan dez sept fall spring estate printemps'.split(' '),
);

const anyOf = (words: Iterable<string>): string => [...words].join('|');

/** Words before a month, a season or a year that make it a date. */
const BEFORE_DATE = anyOf(
  (
    'in of by since until till during before after around early mid late im seit bis ab anfang mitte ende ' +
    'en depuis debut fin desde hasta durante nel em no sinds tot begin eind'
  ).split(' '),
);

const BETWEEN_DATES = anyOf('and to until till through und bis et au y al e a en tot'.split(' '));

/** Words before or after a duration such as "three weeks" that put it in the past (`AGO`) or in the future (`AHEAD`). */
const AGO = { before: 'vor|il y a|hace|ha', after: 'ago|earlier|geleden|fa|atras' };
const AHEAD = { before: 'in|en|dans|tra|fra|em|over', after: 'later|from now' };

const ASKS_WHEN = new RegExp(
  `^\\W*(?:${anyOf([
    'when',
    'since when',
    'how long ago',
    '(?:(?:on|in|at) )?(?:what|which) (?:date|day|week|month|year|time)',
    '(?:seit )?wann',
    '(?:an|in) welchem (?:tag|monat|jahr)',
    '(?:depuis )?quand',
    'quel jour',
    'en quelle annee',
    '(?:desde )?cuando',
    'que dia',
    'en que ano',
    '(?:da |desde )?quando',
    'che giorno',
    'wanneer',
    'welke dag',
  ])})\\b`,
);

/** Days from `from` to `to`, both included, as days since 1970-01-01 in UTC. */
export interface Span {
  from: number;
  to: number;
}

const DAY_MS = 86_400_000;

export function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

export function asksWhen(question: string): boolean {
  return ASKS_WHEN.test(plainText(question));
}

/**
 * The dates in a text that was written on `today`: absolute dates, and those relative to the writer ("yesterday", "two
 * months ago", "next Friday"). A date without a year ("in June") is the nearest such date.
 */
export function datesIn(text: string, today: number): Span[] {
  return readDates(plainText(text), { today, years: nearestYear }).flatMap(({ spans }) => spans);
}

interface AskedDates {
  /** The spans that each date may mean. A date without a year may be the last or the next such date. */
  dates: Span[][];
  rest: string;
}

/** The dates in a question that is asked on `today`. */
export function datesAsked(question: string, today: number): AskedDates {
  const plain = plainText(question);
  const read = readDates(plain, { today, years: yearsAround });
  let rest = '';
  let end = 0;
  for (const date of read) {
    rest += `${plain.slice(end, date.start)} `;
    end = date.end;
  }
  return { dates: read.map(({ spans }) => spans), rest: rest + plain.slice(end) };
}

interface Writer {
  today: number;
  /** The spans that a date without a year may mean, given its span in any year. */
  years: (spanIn: (year: number) => Span, today: number) => Span[];
}

type Groups = Record<string, string | undefined>;

interface Rule {
  pattern: RegExp;
  read: (groups: Groups, writer: Writer) => Span[];
  /** Kinds of words of which a text must have one each, or no part of it can match the pattern. */
  needs: readonly Kinds[];
}

interface Found {
  start: number;
  end: number;
  groups: Groups;
  rule: Rule;
}

function readDates(plain: string, writer: Writer): { start: number; end: number; spans: Span[] }[] {
  const found = matchesIn(plain);
  return found.flatMap((each, index) => {
    const before = found[index - 1];
    const after = found[index + 1];
    if (after && isRange(plain, each, after)) return [];
    const spans = each.rule.read(each.groups, writer);
    if (spans.length === 0) return [];
    if (!before || !isRange(plain, before, each)) return [{ ...each, spans }];
    return [{ ...each, start: before.start, spans: spans.map((end) => rangeOf(before, end)) }];
  });
}

/** The matches of all rules. If two rules match the same words, the earlier rule wins. */
function matchesIn(plain: string): Found[] {
  const found: Found[] = [];
  const kinds = kindsIn(plain);
  for (const rule of RULES) {
    if (rule.needs.some((kind) => (kinds & kind) === 0)) continue;
    for (const { index: start, 0: text, groups: numbered = {} } of plain.matchAll(rule.pattern)) {
      const groups = byName(numbered);
      const end = start + text.length;
      const isFree = found.every((other) => other.end <= start || end <= other.start);
      if (isFree) found.push({ start, end, groups, rule });
    }
  }
  return found.sort((one, other) => one.start - other.start);
}

const RANGE_GAP = new RegExp(`^ (?:${BETWEEN_DATES}|[-–]) $`);

/** Whether two dates are the ends of a range: "11 August to 3 September 2023", but not "on Monday and in June". */
function isRange(plain: string, before: Found, { start, rule }: Found): boolean {
  return before.rule === rule && rule.read === onDate && RANGE_GAP.test(plain.slice(before.end, start));
}

/** The span of a range. Only its end may have a year, so the beginning is the nearest date before it. */
function rangeOf(beginning: Found, { from: today, to }: Span): Span {
  const [begin] = beginning.rule.read(beginning.groups, { today, years: nearestYear });
  return { from: Math.min(begin?.from ?? today, today), to };
}

const MONTH = `(?<month>${anyOf(MONTH_OF.keys())})`;
const SEASON = `(?<season>${anyOf(SEASON_OF.keys())})`;
const CLEAR_MONTH = `(?<month>${anyOf([...MONTH_OF.keys()].filter((name) => !AMBIGUOUS.has(name)))})`;
const WEEKDAY = `(?<weekday>${anyOf(WEEKDAY_OF.keys())})`;
const UNIT = `(?<unit>${anyOf(UNIT_OF.keys())})`;
const NUMBER = `(?:an? )?(?<number>\\d{1,3}|${anyOf(NUMBER_OF.keys())})(?: of| de)?`;
const NEAR = `(?<near>${anyOf(NEARBY_OF.keys())})`;
const NIGHTS = 'night evening nacht nuit noche notte noite'.split(' ');
const NAMED = `(?:${UNIT}|${WEEKDAY}|${MONTH}|${SEASON}|(?<night>${anyOf(NIGHTS)}))`;
const DAY = '(?<day>\\d{1,2})';
const YEAR = '(?<year>(?:19|20)\\d\\d)';
const OF = '(?:of |del? |di )?';

/** A set of kinds of words, one bit each. */
type Kinds = number;
const KIND = {
  month: 1,
  season: 2,
  weekday: 4,
  unit: 8,
  day: 16,
  near: 32,
  night: 64,
  ago: 128,
  this: 256,
  digit: 512,
  sign: 1_024,
};
const NAMED_KINDS = KIND.unit | KIND.weekday | KIND.month | KIND.season | KIND.night;

const AGO_WORDS = `${AGO.before}|${AGO.after}`.split(/[ |]/);
const KINDS_OF = kindsOf([
  [KIND.month, MONTH_OF.keys()],
  [KIND.season, SEASON_OF.keys()],
  [KIND.weekday, WEEKDAY_OF.keys()],
  [KIND.unit, UNIT_OF.keys()],
  [KIND.day, DAY_OF.keys()],
  [KIND.near, NEARBY_OF.keys()],
  [KIND.night, NIGHTS],
  [KIND.ago, AGO_WORDS],
  [KIND.this, ['this']],
]);
const A_WORD = /[\p{L}\p{N}]+/gu;
const A_DIGIT = /\d/;
const A_SIGN = /[月월昨今明어오내]/;

function kindsOf(rows: readonly [Kinds, Iterable<string>][]): ReadonlyMap<string, Kinds> {
  const kinds = new Map<string, Kinds>();
  for (const [kind, words] of rows) for (const word of words) kinds.set(word, (kinds.get(word) ?? 0) | kind);
  return kinds;
}

/** The kinds of all words of a text. One pass over the words saves most of the patterns, which are slow. */
function kindsIn(plain: string): Kinds {
  let kinds = (A_DIGIT.test(plain) ? KIND.digit : 0) | (A_SIGN.test(plain) ? KIND.sign : 0);
  for (const [word] of plain.matchAll(A_WORD)) kinds |= KINDS_OF.get(word) ?? 0;
  return kinds;
}

const RULES: readonly Rule[] = [
  rule(`${YEAR}[-/](?<number>\\d\\d?)(?:[-/]${DAY})?(?:t[\\d:]{1,12}z?)?`, onDate, KIND.digit),
  rule(`${DAY}\\.(?<number>\\d\\d?)\\.${YEAR}`, onDate, KIND.digit),
  rule(`${DAY}(?:st|nd|rd|th|er|\\.)? ${OF}${MONTH}\\.?(?:,? ${OF}${YEAR})?`, onDate, KIND.digit, KIND.month),
  rule(`${MONTH}\\.? (?:the )?${DAY}(?:st|nd|rd|th)?(?:,? ${YEAR})?`, onDate, KIND.digit, KIND.month),
  rule(`(?:${MONTH}|${SEASON})\\.?,? ${OF}${YEAR}`, onDate, KIND.digit, KIND.month | KIND.season),
  rule(
    `${NUMBER} ${UNIT} (?:${AGO.after})|(?:${AGO.before}) ${NUMBER} ${UNIT}`,
    unitsFrom(-1),
    KIND.unit,
    KIND.ago,
  ),
  rule(`(?:${AHEAD.before}) ${NUMBER} ${UNIT}|${NUMBER} ${UNIT} (?:${AHEAD.after})`, unitsFrom(1), KIND.unit),
  rule(`${NEAR} ${NAMED}|${NAMED} ${NEAR}`, nearby, KIND.near, NAMED_KINDS),
  rule(`(?<before>day before )?(?<name>${anyOf(DAY_OF.keys())})`, onNamedDay, KIND.day),
  rule(`this (?:morning|afternoon|evening)`, (_, { today }) => [days(today, today)], KIND.this),
  rule(WEEKDAY, nearby, KIND.weekday),
  rule(`(?:${BEFORE_DATE}) (?:the )?(?:${MONTH}|${SEASON})|${CLEAR_MONTH}`, onDate, KIND.month | KIND.season),
  rule(`(?:${BEFORE_DATE}) ${YEAR}`, onDate, KIND.digit),
  unspaced(`(?:${YEAR} ?[年년] ?)?(?<number>\\d\\d?) ?[月월](?: ?${DAY} ?[日일号])?`, onDate),
  unspaced('(?<last>昨[天日]|어제)|[今오][天日늘]|(?<next>明[天日]|내일)', ({ last, next }, { today }) => {
    const day = today + (next ? 1 : 0) - (last ? 1 : 0);
    return [days(day, day)];
  }),
];

function rule(written: string, read: Rule['read'], ...needs: Kinds[]): Rule {
  const source = numberGroups(written);
  return { pattern: new RegExp(`(?<![\\p{L}\\p{N}])(?:${source})(?![\\p{L}\\p{N}])`, 'gu'), read, needs };
}

/** Numbers the names of groups, as in `day_2`, because Node 22 refuses the same name twice, even in two alternatives. */
function numberGroups(source: string): string {
  let count = 0;
  return source.replaceAll(/\(\?<([a-z]+)>/g, (_, name: string) => `(?<${name}_${(count += 1)}>`);
}

function byName(groups: Groups): Groups {
  const matched = Object.entries(groups).filter(([, text]) => text !== undefined);
  return Object.fromEntries(matched.map(([name, text]) => [name.replace(/_\d+$/, ''), text]));
}

function unspaced(source: string, read: Rule['read']): Rule {
  return { pattern: new RegExp(source, 'gu'), read, needs: [KIND.sign] };
}

/** The span of a day, a month, a season or a year. The 31st of June becomes the last day of June. */
function onDate({ year, month, number, season, day }: Groups, { today, years }: Writer): Span[] {
  const first = month === undefined ? SEASON_OF.get(season ?? '') : MONTH_OF.get(month);
  const start = first ?? (number === undefined ? 0 : Number(number) - 1);
  const length = season === undefined ? 1 : 3;
  if (start > 11 || Number(day ?? 1) > 31 || Number(day ?? 1) < 1 || start < 0) return [];
  const isYear = first === undefined && number === undefined;
  const spanIn = (which: number): Span => {
    if (isYear) return months(which, 0, 12);
    if (day === undefined) return months(which, start, length);
    const only = Math.min(dayIn(which, start, Number(day)), months(which, start, 1).to);
    return days(only, only);
  };
  return year === undefined ? years(spanIn, today) : [spanIn(Number(year))];
}

function unitsFrom(direction: -1 | 1): Rule['read'] {
  return ({ number = '', unit = '' }, { today }) => {
    const count = NUMBER_OF.get(number) ?? Number(number);
    return [unitAt(UNIT_OF.get(unit) ?? 'day', direction * count, today)];
  };
}

/** The span of "last week", "next Friday" or "last summer". A weekday alone means the last one. */
function nearby({ near, unit, weekday, month, season, night }: Groups, { today }: Writer): Span[] {
  const offset = NEARBY_OF.get(near ?? '') ?? -1;
  const named = UNIT_OF.get(unit ?? '');
  if (named === 'day') return [];
  if (named) return [unitAt(named, offset, today)];
  if (night !== undefined) return offset === 1 ? [] : [days(today + offset, today + offset)];
  const wanted = WEEKDAY_OF.get(weekday ?? '');
  if (wanted !== undefined) return [weekdayAt(wanted, offset, near === undefined, today)];
  const spanIn = (year: number) =>
    season === undefined
      ? months(year, MONTH_OF.get(month ?? '') ?? 0, 1)
      : months(year, SEASON_OF.get(season) ?? 0, 3);
  if (offset === 0) return nearestYear(spanIn, today);
  const year = yearOf(today);
  const spans = [year - 2, year - 1, year, year + 1].map(spanIn);
  const found = offset < 0 ? spans.findLast(({ to }) => to < today) : spans.find(({ from }) => from > today);
  return found ? [found] : [];
}

function onNamedDay({ before, name = '' }: Groups, { today }: Writer): Span[] {
  const day = today + (DAY_OF.get(name) ?? 0) - (before === undefined ? 0 : 1);
  return [days(day, day)];
}

/** The day, week, month or year `count` after the present one. Weeks begin on Monday. */
function unitAt(unit: Unit, count: number, today: number): Span {
  const date = new Date(today * DAY_MS);
  const monday = today - ((date.getUTCDay() + 6) % 7);
  switch (unit) {
    case 'day':
      return days(today + count, today + count);
    case 'week':
      return days(monday + 7 * count, monday + 7 * count + 6);
    case 'weekend':
      return days(monday + 7 * count + 5, monday + 7 * count + 6);
    case 'month':
      return months(date.getUTCFullYear(), date.getUTCMonth() + count, 1);
    case 'year':
      return months(date.getUTCFullYear() + count, 0, 12);
  }
}

function weekdayAt(weekday: number, offset: number, mayBeToday: boolean, today: number): Span {
  const ahead = (weekday - new Date(today * DAY_MS).getUTCDay() + 7) % 7;
  const coming = ahead === 0 && offset === 1 ? 7 : ahead;
  const past = ahead === 0 && mayBeToday ? 0 : ahead - 7;
  const day = today + (offset < 0 ? past : coming);
  return days(day, day);
}

function nearestYear(spanIn: (year: number) => Span, today: number): Span[] {
  const year = yearOf(today);
  const distance = ({ from, to }: Span) => Math.max(from - today, today - to, 0);
  const spans = [year, year - 1, year + 1].map(spanIn);
  return spans.sort((one, other) => distance(one) - distance(other)).slice(0, 1);
}

/** The last such span, which may have begun today, and the next one. */
function yearsAround(spanIn: (year: number) => Span, today: number): Span[] {
  const year = yearOf(today);
  const spans = [year - 1, year, year + 1].map(spanIn);
  const next = spans.findIndex(({ from }) => from > today);
  return spans.slice(next - 1, next + 1);
}

function yearOf(day: number): number {
  return new Date(day * DAY_MS).getUTCFullYear();
}

function dayIn(year: number, month: number, day: number): number {
  return dayOf(Date.UTC(year, month, day));
}

function months(year: number, month: number, count: number): Span {
  return days(dayIn(year, month, 1), dayIn(year, month + count, 0));
}

function days(from: number, to: number): Span {
  return { from, to };
}
