/** Texts that take the most work to count, to search for facts, to divide and to tell apart. Made from a seed, so always the same. */
export const COSTLY_TEXTS: Readonly<Record<string, (word: Word) => string>> = {
  'random words': (word) => `${word()} `,
  'names in capitals': (word) => `${word().toUpperCase()}-${word().length} `,
  'many demands': (word) => `You must never ${word()}.\n`,
  'many tasks': (word) => `- [ ] ABC-${word()} ${word()}\n`,
  'ticked tasks': (word) => `- [x] ABC-${word()} ${word()}\n`,
  'many paths': (word) => `/${word()}/${word()}.ts:12 `,
  'many errors': (word) => `Error: ${word()} failed at ${word()}\n`,
  'many questions': (word) => `What is ${word()}? `,
  'many goals': (word) => `Our goal is ${word()}. `,
  'many dates': (word) => `${word().length} March ${1_990 + word().length} `,
  'many marks': (word) => `[${word()}] <system> @${word()} `,
  'full stops': () => '. ',
  'no breaks': (word) => word(),
  'rare letters': (word) => String.fromCodePoint(0x4e_00 + word().length * 1_009),
};

type Word = () => string;

export function costlyText(kind: string, length: number, seed = 1): string {
  let state = seed;
  const random = () => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
  const word = () =>
    Array.from({ length: 3 + Math.floor(random() * 8) }, () =>
      String.fromCharCode(97 + Math.floor(random() * 26)),
    ).join('');
  const part = COSTLY_TEXTS[kind] ?? (() => kind);
  let text = '';
  while (text.length < length) text += part(word);
  return text.slice(0, length);
}
