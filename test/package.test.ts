import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '..');

/** The files of the package but `dist`, which is built when it is packed. */
function packedFiles(): string[] {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const printed = execFileSync('npm', args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  // A list, or with newer versions of npm an object by name.
  const [pack] = Object.values(JSON.parse(printed) as Record<string, { files: { path: string }[] }>);
  return (pack?.files ?? []).map((file) => file.path);
}

const LINK = /\]\((?!https?:|mailto:|#)([^)#\s]+)/g;

test('what README and the docs link to is packed with them', () => {
  const packed = packedFiles();
  const pages = packed.filter((file) => /^(?:README\.md|docs\/.*\.md|examples\/.*\.md)$/.test(file));
  expect(pages).toContain('docs/how-to/library.md');
  const dead = pages.flatMap((page) => {
    const links = [...readFileSync(path.join(ROOT, page), 'utf8').matchAll(LINK)].map(([, to = '']) => to);
    const targets = links.map((to) => path.posix.normalize(path.posix.join(path.posix.dirname(page), to)));
    const isPacked = (target: string) =>
      packed.some((file) => file === target || file.startsWith(`${target.replace(/\/$/, '')}/`));
    return targets.filter((target) => !isPacked(target)).map((target) => `${page}: ${target}`);
  });
  expect(dead).toEqual([]);
});

test('the sources that source maps and declaration maps point to are packed', () => {
  const { compilerOptions } = JSON.parse(readFileSync(path.join(ROOT, 'tsconfig.build.json'), 'utf8')) as {
    compilerOptions: { rootDir: string; declarationMap: boolean; sourceMap: boolean };
  };
  expect(compilerOptions).toMatchObject({ rootDir: 'src', declarationMap: true, sourceMap: true });
  expect(packedFiles()).toEqual(
    expect.arrayContaining(['src/index.ts', 'src/library/troupe.ts', 'src/http/api/client.ts']),
  );
});
