import type { OAuthClientProvider } from '@modelcontextprotocol/client';
import { TroupeError } from '../../base/errors.ts';
import type { HttpServer, SignIn } from './settings.ts';

/** The name under which Troupe signs in. */
const CLIENT_NAME = 'troupe';
const SAID_CHARACTERS = 200;

/**
 * Gets tokens with the client's own credentials. Holds them in memory: after a restart they are asked for again. The
 * client library renews one that the server no longer takes, and sends the credentials to the issuer of the settings only.
 */
export async function createSignIn(
  { issuer, clientId, clientSecretEnv, privateKeyEnv, algorithm = 'RS256', scope }: SignIn,
  variables: Readonly<Record<string, string>>,
): Promise<OAuthClientProvider> {
  const client = await import('@modelcontextprotocol/client');
  const shared = {
    clientId,
    clientName: CLIENT_NAME,
    expectedIssuer: issuer,
    ...(scope !== undefined && { scope }),
  };
  if (privateKeyEnv === undefined) {
    const clientSecret = variables[clientSecretEnv ?? ''] ?? '';
    return new client.ClientCredentialsProvider({ ...shared, clientSecret });
  }
  // Variables mostly hold a key in one line.
  const privateKey = (variables[privateKeyEnv] ?? '').replaceAll('\\n', '\n');
  return new client.PrivateKeyJwtProvider({ ...shared, privateKey, algorithm });
}

/** Says what is wrong with a sign-in, and how it is mended. Null for any other error. */
export async function signInProblem({ oauth }: HttpServer): Promise<(error: unknown) => string | null> {
  const client = await import('@modelcontextprotocol/client');
  // Guards of the library take every error for theirs, by structure.
  const isUnauthorized = (thrown: unknown): boolean => client.UnauthorizedError.isInstance(thrown);
  function wordsOf(thrown: Error): string | null {
    if (thrown instanceof TroupeError)
      return thrown.code === 'address_refused' ? refusedAddress(thrown, oauth) : null;
    if (thrown instanceof client.AuthorizationServerMismatchError)
      return `sign-in: it names another authorization server (${shown(thrown.currentIssuer)}) than oauth.issuer, which alone gets the credentials`;
    if (thrown instanceof client.OAuthError)
      return `sign-in: the authorization server refused it (${shown(thrown.code)}: ${shown(thrown.message)}); check oauth.clientId, ${variableOf(oauth)} and oauth.scope`;
    const is401 = thrown instanceof client.SdkHttpError && thrown.status === 401;
    if (!is401 && !isUnauthorized(thrown)) return null;
    return oauth
      ? 'sign-in: it refused a token that was just issued; check oauth.scope, and whether the issuer gives tokens for this server'
      : 'it asks for a sign-in (401): give it "oauth", or a header with "headersEnv"';
  }
  return (error) => {
    for (let at = error, depth = 0; at instanceof Error && depth < 6; at = at.cause, depth += 1) {
      const words = wordsOf(at);
      if (words !== null) return words;
    }
    return null;
  };
}

function refusedAddress({ message }: TroupeError, oauth: SignIn | undefined): string {
  return oauth ? `${message}. Of other hosts, only those in "oauth.allow" are reached` : message;
}

function variableOf(oauth: SignIn | undefined): string {
  return oauth?.clientSecretEnv ?? oauth?.privateKeyEnv ?? 'its variable';
}

function shown(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, SAID_CHARACTERS).toWellFormed();
}
