/**
 * The words for dates in English, German, French, Spanish, Italian, Portuguese and Dutch: lower case and without
 * accents, as `plainText` leaves them. A word that usually means something else in one of the languages is left out.
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

/** Sunday first, as `getUTCDay` counts. */
const WEEKDAYS = [
  'sunday sonntag dimanche domingo domenica zondag',
  'monday montag lundi lunes lunedi maandag',
  'tuesday dienstag mardi martes martedi dinsdag',
  'wednesday mittwoch mercredi miercoles mercoledi woensdag',
  'thursday donnerstag jeudi jueves giovedi donderdag',
  'friday freitag vendredi viernes venerdi vrijdag',
  'saturday samstag sonnabend samedi sabado sabato zaterdag',
];

/** By the number of the first month. */
const SEASONS: Record<number, string> = {
  2: 'spring fruhling fruhjahr printemps primavera voorjaar',
  5: 'summer sommer estate verano verao zomer',
  8: 'autumn fall herbst automne otono autunno outono herfst',
  11: 'winter hiver invierno inverno',
};

/** By days from the day of the speaker. */
const DAYS: Record<number, string> = {
  '-2': 'vorgestern anteayer avantieri anteontem eergisteren',
  '-1': 'yesterday gestern ayer ieri ontem gisteren',
  0: 'today tonight heute hoy oggi hoje vandaag',
  1: 'tomorrow demain manana domani amanha',
  2: 'ubermorgen dopodomani overmorgen',
};

export type Unit = 'day' | 'week' | 'weekend' | 'month' | 'year';

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

/** By the number of units from the present one. */
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

export const MONTH_OF = tableOf(MONTHS);
export const WEEKDAY_OF = tableOf(WEEKDAYS);
export const SEASON_OF = tableOf(SEASONS);
export const DAY_OF = tableOf(DAYS);
export const NUMBER_OF = tableOf(NUMBERS);
export const NEARBY_OF = tableOf(NEARBY);
export const UNIT_OF: ReadonlyMap<string, Unit> = new Map(
  Object.entries(UNITS).flatMap(([unit, words]) => words.split(' ').map((word) => [word, unit as Unit])),
);

/** Names that are also common words, so that a month needs a number or a word of `BEFORE_DATE` beside it. */
export const AMBIGUOUS: ReadonlySet<string> = new Set(
  'may march mars mai mei jan dez sept fall spring estate printemps'.split(' '),
);

export const anyOf = (words: Iterable<string>): string => [...words].join('|');

/** Words after which a month, a season or a year is a date. */
export const BEFORE_DATE = anyOf(
  (
    'in of by since until till during before after around early mid late im seit bis ab anfang mitte ende ' +
    'en depuis debut fin desde hasta durante nel em no sinds tot begin eind'
  ).split(' '),
);

/** Words between the ends of a range. */
export const BETWEEN_DATES = anyOf('and to until till through und bis et au y al e a en tot'.split(' '));

/** Before and after "three weeks", for three weeks ago and in three weeks. */
export const AGO = { before: 'vor|il y a|hace|ha', after: 'ago|earlier|geleden|fa|atras' };
export const AHEAD = { before: 'in|en|dans|tra|fra|em|over', after: 'later|from now' };

/** Asks for a time. */
export const ASKS_WHEN = new RegExp(
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
