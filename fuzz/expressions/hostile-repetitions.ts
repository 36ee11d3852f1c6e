import { type AST, RegExpParser, visitRegExpAST } from '@eslint-community/regexpp';

/** A text that grows: `head`, then `unit` repeated, then `tail`. */
export interface Repetition {
  head: string;
  unit: string;
  tail: string;
}

export function grown({ head, unit, tail }: Repetition, size: number): string {
  return head + unit.repeat(Math.max(1, Math.ceil((size - head.length - tail.length) / unit.length))) + tail;
}

/** Letters of every class that expressions distinguish; the first that matches represents a class. */
const LETTERS = Array.from(
  'aA0 \n-./:_"\\@[]<>`(){}*,;=?!#\'|~+&%$^\t\réßж漢。？\u0301\u0345\u0483\u200b\u0085\u2028\u3000＜【🎭',
);
/** Text between two repetitions, or after the last: often something that matches nothing. */
const BETWEEN = ['', ' ', '\n', '-', '.', ':', '"', '!', '\u0000'];
const TAILS = ['', '\u0000', '\n\u0000', '"'];
const SAMPLES_OF_A_CLASS = 4;
const MOST_OF_A_COUNT = 64;

/** What our parsers look for: opening marks, with and without their end. */
const PARTS = [
  '<think>',
  '<summary>',
  '<tool_call>{',
  '<tool_call>{}</tool_call>\n',
  '\n{"name": "a", "arguments": {}}',
  '{"arguments": "',
  '{"a":',
  '```json\n',
  '# a\n',
  '\n#  \n',
  '- [ ] a\n',
  'Error: a\n',
  'must a. ',
  'https://a.b:c@',
  '/a/b.ts:1:',
  'eyJaaaaaaaaaa.',
  '[a -> @b]',
  '@artifact/a',
  'nostr:npub1',
  '<script>',
  '<!-- ',
  '&#x41;',
  '<msg-',
  '\n[a -> ',
];

/** For any function that takes text: single letters, pairs, and constructs of our formats. */
export function plainRepetitions(): Repetition[] {
  const units = LETTERS.flatMap((letter) => ['', ' ', 'a', '\n'].map((other) => letter + other));
  return [...units, ...PARTS].map((unit) => ({ head: '', unit, tail: '\u0000' }));
}

/**
 * The texts that give an expression most to try: each of its repetitions continues behind the shortest text that
 * reaches it, and such beginnings are repeated.
 */
export function hostileRepetitions({ source, flags }: { source: string; flags: string }): Repetition[] {
  const unicode = flags.includes('v')
    ? { unicodeSets: true, unicode: false }
    : { unicode: flags.includes('u'), unicodeSets: false };
  const pattern = new RegExpParser().parsePattern(source, 0, source.length, unicode);
  const samples = new Samples(flags);
  const found: Repetition[] = LETTERS.map((unit) => ({ head: '', unit, tail: '\u0000' }));
  const visit = (repeated: AST.Quantifier): void => {
    const head = samples.before(repeated);
    for (const unit of samples.several(repeated.element)) {
      if (unit === '') continue;
      for (const tail of TAILS) found.push({ head, unit, tail });
      for (const letter of BETWEEN) {
        const again = head + unit.repeat(Math.max(1, Math.min(repeated.min, MOST_OF_A_COUNT))) + letter;
        found.push({ head: '', unit: again, tail: '' }, { head, unit: unit + letter, tail: '\u0000' });
      }
    }
  };
  visitRegExpAST(pattern, { onQuantifierEnter: visit });
  const whole = samples.one(pattern);
  if (whole !== '') for (const letter of BETWEEN) found.push({ head: '', unit: whole + letter, tail: '' });
  return [...new Map(found.map((each) => [JSON.stringify(each), each])).values()];
}

/** Short texts that parts of an expression match, or nearly match. Lookarounds are omitted. */
class Samples {
  readonly #flags: string;

  constructor(flags: string) {
    this.#flags = flags.replace(/[gy]/g, '');
  }

  one(node: AST.Node): string {
    return this.several(node)[0] ?? '';
  }

  several(node: AST.Node): string[] {
    if (!hasLetters(node)) return [''];
    switch (node.type) {
      case 'Pattern':
      case 'Group':
      case 'CapturingGroup':
        return node.alternatives.slice(0, SAMPLES_OF_A_CLASS).map((each) => this.one(each));
      case 'Alternative':
        return [node.elements.map((each) => this.one(each)).join('')];
      case 'Quantifier': {
        const count = Math.max(1, Math.min(node.min, MOST_OF_A_COUNT));
        return this.several(node.element).map((text) => text.repeat(count));
      }
      case 'Backreference':
        return [this.one([node.resolved].flat()[0] as AST.CapturingGroup)];
      case 'Character':
        return [String.fromCodePoint(node.value)];
      case 'CharacterSet':
      case 'CharacterClass':
      case 'ExpressionCharacterClass':
        return this.#letters(node.raw);
    }
  }

  /** The shortest text from the start of the expression to this node. */
  before(node: AST.Node): string {
    const { parent } = node;
    if (parent === null || parent === undefined) return '';
    if (parent.type !== 'Alternative') return this.before(parent);
    const earlier = parent.elements.slice(0, parent.elements.indexOf(node as AST.Element));
    const needed = earlier.filter((each) => each.type !== 'Quantifier' || each.min > 0);
    return this.before(parent) + needed.map((each) => this.one(each)).join('');
  }

  #letters(raw: string): string[] {
    const pattern = new RegExp(`^(?:${raw})$`, this.#flags);
    const found = LETTERS.filter((letter) => pattern.test(letter));
    return found.length <= SAMPLES_OF_A_CLASS
      ? found
      : [...found.slice(0, 2), ...found.slice(-(SAMPLES_OF_A_CLASS - 2))];
  }
}

const WITH_LETTERS = [
  'Pattern',
  'Group',
  'CapturingGroup',
  'Alternative',
  'Quantifier',
  'Backreference',
  'Character',
  'CharacterSet',
  'CharacterClass',
  'ExpressionCharacterClass',
] as const;

/** The other nodes match a position, or stand within a class. */
function hasLetters(node: AST.Node): node is Extract<AST.Node, { type: (typeof WITH_LETTERS)[number] }> {
  return WITH_LETTERS.some((type) => type === node.type);
}
