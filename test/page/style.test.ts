import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

/** The styles of the page: one scale of type, one of spaces, one set of colours, all in tokens.css. */
const WEB = path.join(import.meta.dirname, '../../web/src');
const STYLE = path.join(WEB, 'style');
const TOKENS = readFileSync(path.join(STYLE, 'tokens.css'), 'utf8');

const sheets = readdirSync(STYLE)
  .filter((file) => file.endsWith('.css') && file !== 'tokens.css')
  .map((file) => ({ file, text: readFileSync(path.join(STYLE, file), 'utf8') }));

const declarations = sheets.flatMap(({ file, text }) =>
  [...text.replaceAll(/\/\*[^*]*\*\//g, '').matchAll(/([\w-]+): ([^;{}]+);/g)].map(
    ([, name = '', value = '']) => ({
      file,
      name,
      value,
    }),
  ),
);

/** The declarations of these properties that have something else than is allowed, by file. */
function wrong(property: RegExp, allowed: RegExp): string[] {
  return declarations
    .filter(({ name, value }) => property.test(name) && !allowed.test(value))
    .map(({ file, name, value }) => `${file}: ${name}: ${value}`);
}

const each = (part: string) => new RegExp(`^(${part})( (${part}))*$`);
const SPACE = String.raw`0|auto|-?1px|var\(--space-\d+\)|calc\((-1 \* |)var\(--space-\d+\)( [+-] var\(--space-\d+\))*\)`;

test('sizes of type, spaces and corners are those of tokens.css', () => {
  expect(wrong(/^font-size$/, /^(var\(--font-[a-z]+\)|inherit)$/)).toEqual([]);
  expect(
    wrong(/^font$/, /^(var\(--font-[a-z]+\) (\/ var\(--leading(-text)?\) )?var\(--(sans|mono)\)|inherit)$/),
  ).toEqual([]);
  expect(wrong(/^font-weight$/, /^[456]00$/)).toEqual([]);
  expect(wrong(/^(padding|margin|gap|row-gap|column-gap)/, each(SPACE))).toEqual([]);
  expect(wrong(/^border-radius$/, /^(0|50%|var\(--(corner(-small|-large)?|round)\))$/)).toEqual([]);
});

test('colours are those of tokens.css', () => {
  const raw = /#[\da-f]{3}|\b(rgb|hsl|oklch|light-dark)\(|\b(white|black|gr[ae]y|red|blue|green)\b/i;
  expect(declarations.filter(({ value }) => raw.test(value))).toEqual([]);
});

test('every token is used, and none is used that does not exist', () => {
  const scripts = readdirSync(WEB, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file))
    .map((file) => readFileSync(path.join(WEB, file), 'utf8'))
    .join('\n');
  const all = [TOKENS, ...sheets.map(({ text }) => text)].join('\n');
  const made = new Set([...all.matchAll(/(--[\w-]+): /g)].map(([, name = '']) => name));
  // Widths of columns, and the colour of a person, are set by the scripts.
  const set = new Set([...scripts.matchAll(/'(--[\w-]+)'/g)].map(([, name = '']) => name));
  const used = new Set([...all.matchAll(/var\((--[\w-]+)/g)].map(([, name = '']) => name));
  expect([...used].filter((name) => !made.has(name) && !set.has(name))).toEqual([]);
  const named = new Set([...scripts.matchAll(/token\('([\w-]+)'\)/g)].map(([, name = '']) => `--${name}`));
  const idle = [...made].filter(
    (name) => !used.has(name) && !named.has(name) && !name.startsWith('--layer-'),
  );
  expect(idle).toEqual([]);
});

/** Both colours of a token: in the light and in the dark. */
function colours(name: string): [string, string] {
  const [, light, dark] = new RegExp(`--${name}: light-dark\\((#\\w{6}), (#\\w{6})\\)`).exec(TOKENS) ?? [];
  if (light === undefined || dark === undefined) throw new Error(`no colours of ${name}`);
  return [light, dark];
}

/** The contrast of two colours by WCAG 2.2. */
function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(one), luminance(other)].toSorted((a, b) => b - a) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The pairs below this contrast, in both themes. */
function faint(fronts: readonly string[], backs: readonly string[], least: number): string[] {
  return fronts.flatMap((front) =>
    backs.flatMap((back) =>
      [0, 1].flatMap((theme) => {
        const ratio = contrast(colours(front)[theme] ?? '', colours(back)[theme] ?? '');
        return ratio < least
          ? [`${front} on ${back}, ${theme === 0 ? 'light' : 'dark'}: ${ratio.toFixed(2)}`]
          : [];
      }),
    ),
  );
}

test('texts have a contrast of 4.5 to every surface in both themes, edges of fields one of 3', () => {
  const surfaces = ['page', 'panel', 'raised', 'accent-soft', 'failed-soft', 'waiting-soft', 'running-soft'];
  expect(faint(['text', 'quiet', 'accent', 'failed', 'waiting', 'running'], surfaces, 4.5)).toEqual([]);
  expect(faint(['hit-text'], ['hit'], 4.5)).toEqual([]);
  expect(faint(['text'], ['turn'], 4.5)).toEqual([]);
  const layers = Array.from({ length: 10 }, (_, n) => `layer-${n + 1}`);
  expect(faint(layers, ['page'], 4.5)).toEqual([]);
  expect(faint(['field'], ['page', 'panel'], 3)).toEqual([]);
});
