import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { withoutText } from '../test/types/hover.ts';

/**
 * Asks the language service, in a project that has the package `home` installed, for the texts of all that `entries` export and lead
 * to. It finds them as an editor of a user does: by the `exports` of the package. Throws with what has no text.
 */
export function checkHover(app: string, entries: readonly string[], home = 'troupe'): string {
  const folder = path.join(app, 'hover', home);
  mkdirSync(folder, { recursive: true });
  const files = entries.map((entry, index) => {
    const file = path.join(folder, `entry-${index}.ts`);
    writeFileSync(file, `export * from '${entry}';\n`);
    return file;
  });
  const config = path.join(folder, 'tsconfig.json');
  const compilerOptions = { module: 'nodenext', target: 'es2024', strict: true, types: [] };
  writeFileSync(config, JSON.stringify({ compilerOptions, files }));
  const missing = withoutText(config, files, path.join(app, 'node_modules', home));
  if (missing.length > 0) throw new Error(`without a text on hover: ${missing.join(', ')}`);
  return `every symbol and field of ${entries.join(', ')} has a text on hover`;
}
