import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { expect, test } from 'vitest';

const LIMIT = 10_000;

test('client and hooks are less than 10 kB in a page, without React', async () => {
  const source = path.join(import.meta.dirname, '../src');
  const built = await build({
    configFile: false,
    logLevel: 'silent',
    build: {
      write: false,
      minify: true,
      lib: { entry: [`${source}/index.ts`, `${source}/react.ts`], formats: ['es'] },
      rolldownOptions: { external: ['react'] },
    },
  });
  const chunks = [built].flat().flatMap((each) => ('output' in each ? each.output : []));
  const code = chunks.map((chunk) => (chunk.type === 'chunk' ? chunk.code : '')).join('\n');
  const size = gzipSync(code).length;
  console.log(`@troupe/client with hooks: ${size} bytes gzipped`);
  expect(code).toContain('useEffect');
  expect(size).toBeGreaterThan(2_000);
  expect(size).toBeLessThan(LIMIT);
});
