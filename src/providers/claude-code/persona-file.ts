import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { makePrivateDir } from '../../private-files.ts';
import { shortHash } from './launch.ts';

/**
 * The instructions of each cache key's latest session. Claude Code is told them at every start, and a request that
 * resumes a session does not bring them. Without them the session counts as lost.
 */
const Persona = z.object({ session: z.string(), system: z.string() });

export interface PersonaFile {
  write(cacheKey: string, persona: z.infer<typeof Persona>): void;
  /** Null if that session is not the latest, or was not begun here. */
  read(cacheKey: string, session: string): string | null;
}

export function openPersonaFile(home: string): PersonaFile {
  const dir = join(home, 'sessions');
  const fileOf = (cacheKey: string) => join(dir, `${shortHash(cacheKey)}.json`);
  return {
    write(cacheKey, persona) {
      makePrivateDir(dir);
      writeFileSync(fileOf(cacheKey), JSON.stringify(persona), { mode: 0o600 });
    },
    read(cacheKey, session) {
      try {
        const persona = Persona.parse(JSON.parse(readFileSync(fileOf(cacheKey), 'utf8')));
        return persona.session === session ? persona.system : null;
      } catch {
        // Missing, or cut off by a crash: a new session costs less than a wrong persona.
        return null;
      }
    },
  };
}
