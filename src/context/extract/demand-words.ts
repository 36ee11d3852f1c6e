/**
 * Words of obligation by language, as data. A `strong` word makes a sentence a demand. A `weak` word (always, only, at least)
 * does so if the sentence is not about its speaker. Each list becomes a plain alternation, which no text makes slow.
 */
interface DemandWords {
  strong: readonly string[];
  weak: readonly string[];
  /** First persons with a verb, past tenses and feelings. A sentence with them describes and does not demand. */
  tells: readonly string[];
  /** The language is written without spaces, so its words match anywhere. */
  unspaced?: true;
}

/** Spanish verbs in -er and -ir. With an e they tell: `no comes`; a ban has an a: `no comas`. */
const TELLS_ES =
  '(?!(?:tien|quier|pued|sab|entiend|vien|hac|parec|conoc|com|beb|corr|viv|escrib|abr|le|duerm|sirv|pierd|recib|permit|sub|sufr|cumpl|depend|aprend|respond|ofrec|crec|merec|pertenec|aparec)(?:e|es|en)(?!\\p{L}))';
/** Portuguese verbs of a state, which nobody can forbid. */
const TELLS_PT =
  '(?!(?:sabe|parece|existe|acontece|depende|consegue|merece|pertence|conhece|entende|cabe|cresce|chove)(?!\\p{L}))';

export const DEMAND_WORDS: Readonly<Record<string, DemandWords>> = {
  de: {
    strong: [
      `bitte (?:nicht|kein\\p{L}*|immer|nur)|bitte (?:\\S+ ){1,6}(?:nicht|nie|niemals|kein\\p{L}*)|nicht (?:mehr|weniger|später|länger) als|(?:du|ihr|sie|man|wir) (?:musst|müsst|müssen|muss|darf|darfst|dürft|dürfen|sollst|sollt|sollen|sollte[nst]*)`,
      `(?:muss|müssen|darf|dürfen|soll|sollen|sollte[nst]*) (?:\\p{L}+ ){0,8}(?:werden|sein|bleiben|haben|stehen|nicht|kein\\p{L}*|nur|nie)`,
      `auf keinen fall|keinesfalls|unter keinen umständen|keinerlei|ab (?:jetzt|sofort)|spätestens|frühestens|ausschließlich|nicht erlaubt|verboten|pflicht|allergisch`,
      `wichtig(?: ist)?,? dass|vermeide\\p{L}*|(?:ich|wir) (?:will|möchte|wollen|möchten|bevorzuge\\p{L}*) (?:\\p{L}+ ){0,4}(?:nicht|kein\\p{L}*|nur|lieber)|nicht (?:ändern|anfassen|löschen)|^\\p{L}+en sie (?:\\S+ ){0,8}(?:nicht|kein\\p{L}*)`,
      `(?:höchstens|mindestens|maximal|nicht mehr als|unter|über) \\d\\p{L}*|bevorzuge?`,
    ],
    weak: [
      'nie|niemals|immer|nur|lieber|mindestens|höchstens|überall|unbedingt|nicht mehr|kein\\p{L}*|stattdessen|ohne',
      // An infinitive without a finite verb, or an imperative with the rest of its verb at the end.
      `^(?!.{0,80}(?<!\\p{L})(?:ich|du|er|sie|es|wir|ihr|man|bin|bist|ist|sind|seid|war\\p{L}{0,3}|hab\\p{L}{1,2}|hat|hast|hatte\\p{L}{0,2}|w[ei]rd\\p{L}{0,2}|wurde\\p{L}{0,2}|würde\\p{L}{0,2}|kann|konnte\\p{L}{0,2}|könn\\p{L}{1,5}|will|woll\\p{L}{1,5}|muss\\p{L}{0,4}|durfte\\p{L}{0,2}|sollte\\p{L}{0,2}|mochte\\p{L}{0,2}|möchte\\p{L}{0,2})\\s)(?:\\S+ ){1,8}nicht \\p{L}+e[lr]?n[.!]*$`,
      `^(?!(?:ich|du|er|sie|es|wir|ihr|man|das|dies\\p{L}*|der|die|den|dem|hier|da|so|(?:m|d|s)?ein\\p{L}*|unser\\p{L}*|ihre\\p{L}*|heute|gestern|leider|\\S+ \\S+t)\\s)(?!.{0,80}\\s(?:ich|wir)\\s)(?:\\S+ ){1,8}nicht (?:an|ab|auf|aus|ein|mit|vor|zu|weg|um|hin|nach|zurück|los|weiter)[.!]*$|^(?!\\S+t )\\S+ (?:dem|den|mir|ihm|ihnen|uns) (?:\\S+ ){0,6}nicht[.!]*$`,
    ],
    tells: [
      `ich (?:bin|war|habe?|hatte|werde|muss|musste|darf|liebe|mag|fühle|finde|denke|glaube)|wir (?:waren|hatten|haben|sind)|(?:er|sie|es|das) (?:ist|war|hat|hatte|muss)`,
      `schön|toll|super|lieb|liebe|glücklich|freue|wunderbar|traurig|spaß|war(?:en|st)?`,
    ],
  },
  fr: {
    strong: [
      `(?:vous|tu|on|nous) (?:devez|dois|doit|devons|ne (?:devez|dois|doit|devons|pouvez|peux|peut|pouvons))|(?:doit|doivent) (?:être|rester|toujours|avoir|passer)|il (?:ne )?faut|faut pas`,
      `ne \\p{L}+(?:ez|e|es|s) (?:pas|plus|jamais|rien|que)|n['’]\\p{L}+(?:ez|e|es|s) (?:pas|plus|jamais|rien|que)|(?:merci )?de ne (?:pas|plus|jamais)|^ne (?:pas|plus|jamais) \\p{L}+|en aucun cas|à partir de maintenant|désormais|au plus t(?:ard|ôt)|il est important`,
      `interdit\\p{L}*|obligatoire\\p{L}*|évite[rz]?|(?:je|nous) préf[èé]r\\p{L}*|(?:je|nous) (?:ne veux|ne voulons)|pas plus de|au (?:maximum|minimum)|au (?:moins|plus) \\d+|allergique`,
    ],
    weak: ['jamais|toujours|seulement|uniquement|surtout|partout|au moins|au plus|sauf|sans|plutôt'],
    tells: [
      `j['’](?:ai|étais|avais|adore|aime)|je (?:suis|me|dois|t['’]aime|pense|crois)|c['’](?:est|était)|on a|nous avons|il a|elle a|ils ont|était|beau|belle|super|heureu\\p{L}*|content\\p{L}*|génial|magnifique`,
    ],
  },
  es: {
    strong: [
      `(?:deb(?:e|es|en|emos)|tienen? que|hay que|no se (?:debe|puede)|no (?:debe|puede)\\p{L}*|no queremos|no quiero) \\p{L}+`,
      `por favor,? no|no (?:más|menos) de|^no ${TELLS_ES}\\p{L}{2,}(?:es|as) (?:el|la|los|las|al|con|nada|esto|eso|mi|tu|su|un|una|en|de)|en ningún caso|bajo ningun[ao]?|nunca \\p{L}+(?:s|en|es)|jamás \\p{L}+(?:s|en|es)|de ahora en adelante|a partir de ahora|a más tardar|es importante que`,
      `no ${TELLS_ES}\\p{L}+(?:es|as|e|a|en|an) (?:el|la|los|las|nada|nunca|ningún|ninguna|más)|evit(?:a|e|ar|en|es)|prohibid[oa]s?|obligatori[oa]s?|como máximo|como mínimo|al menos \\d+|prefer(?:imos|iría)|prefiero|alérgic[oa]`,
    ],
    weak: [
      'nunca|jamás|siempre|solo|sólo|solamente|únicamente|al menos|sin|en vez de|en lugar de',
      `^no (?:(?:me|te|le|lo|la|les|los|las|nos|se) ){1,2}${TELLS_ES}(?!(?:tien|quier|pued|sab|entiend|vien|hac|parec|conoc|piens|necesit|cre|viv|suel|funcion|gust|import|eres|está|vas?(?!\\p{L}))\\p{L}*)\\p{L}{2,}(?:es|as|e|en)(?= \\p{L}|[.!]*$)`,
      `^no ${TELLS_ES}(?!(?:tien|quier|pued|sab|entiend|vien|hac|parec|conoc|piens|necesit|cre|viv|suel|funcion|gust|import|eres|está|vas?(?!\\p{L}))\\p{L}*)\\p{L}{2,}(?:es|as|e|en) (?:al|con|por|sin|hasta|más|ni|todavía|aún|para|el|la|los|las|un|una|mi|tu|su|nada|eso|esto)`,
      '^no (?:uses|hagas|digas|pongas|borres|escribas|envíes|mandes|toques|cambies|publiques|llames|avises|invites|contestes|contactes|molestes|copies|cobres|pagues|vendas|compres|dejes|reveles|menciones|compartas|aceptes|respondas|modifiques|elimines)',
    ],
    tells: [
      `(?:yo|me|mi|nos|he|hemos|estoy|estaba|era|fue|fui|tuve|tengo que|debo|quiero a|te quiero|amo|encanta\\p{L}*|feliz|felices|bonit[oa]|hermos[oa]|genial|divertid[oa])`,
    ],
  },
  pt: {
    strong: [
      `(?:deve[mi]?|devemos|tem que|têm que|temos que|é preciso|não (?:pode|podem|podemos|deve|devem|queremos|quero)) \\p{L}+|por favor,? não|não mais (?:de|do que|que)`,
      `em (?:nenhum caso|hipótese alguma|circunstância alguma)|nunca \\p{L}+|jamais \\p{L}+|a partir de agora|até,? no máximo|o mais tardar|é importante que|não (?:escreva|abra|ponha|diga|venda|permita|responda|exceda|inclua|use|faça|mexa|toque|altere|apague|envie|mude|publique|${TELLS_PT}\\p{L}+e)`,
      `proibid[oa]s?|obrigatóri[oa]s?|no (?:máximo|mínimo)|pelo menos \\d+|evit[ea]|prefiro|preferimos|alérgic[oa]`,
    ],
    weak: ['sempre|só|somente|apenas|unicamente|nunca|jamais|pelo menos|sem|em vez'],
    tells: [
      `(?:eu|me|meu|minha|estou|estava|era|foi|fui|tive|devo|amo|adoro|feliz|bonit[oa]|lind[oa]|legal|divertid[oa]|saudade\\p{L}*)`,
    ],
  },
  it: {
    strong: [
      `(?:deve|devono|devi|dovete|dobbiamo|bisogna|occorre|non (?:si deve|si può|può|possono|possiamo|deve|devono|voglio|vogliamo)) \\p{L}+|per favore,? non|non (?:più|meno) di`,
      `in nessun caso|d['’]ora in poi|entro e non oltre|al più tardi|è importante che|non \\p{L}+(?:are|ere|ire)|non \\p{L}+[aei]r(?:lo|la|li|le|mi|ci|gli|ne)|^non (?!(?:av|si|sap|vol|ved|conosc|cred|cap|sent|viv|st|trov)[aei]te)\\p{L}+[aei]te|mai \\p{L}+(?:are|ere|ire)|vietat[oai]|obbligatori[oa]|al (?:massimo|minimo)|almeno \\d+|evita(?:re|te)?|preferi(?:sco|amo|rei)|allergic[oa]`,
    ],
    weak: ['mai|sempre|solo|soltanto|solamente|unicamente|ovunque|almeno|senza|invece'],
    tells: [
      `(?:io|mi|mio|mia|sono|ero|era|è stat[oa]|ho|abbiamo|devo|amo|adoro|felice|felici|bell[oaie]|divertente|bellissim[oa])`,
    ],
  },
  ru: {
    strong: [
      `(?<!я )долж(?:ен|на|но|ны)|нельзя|ни в коем случае|отныне|с этого момента|не позднее|не (?:более|менее|больше|меньше|позже)|запре[тщ]\\p{L}*|обязательно|важно,? чтобы|избега\\p{L}*`,
      `не (?:\\p{L}+(?:й|йте|ьте|ите|и|ь))|никогда не \\p{L}+(?:й|йте|ьте|ите|и|ь)|не (?:надо|нужно|хочу|хотим)|предпочита\\p{L}*|аллерги\\p{L}*`,
    ],
    weak: ['никогда|всегда|только|лучше|хотя бы|везде|без|вместо'],
    tells: [
      `(?:я|меня|мне|мы) \\p{L}+|был[аио]?|люблю|рад\\p{L}*|счастлив\\p{L}*|красив\\p{L}*|здорово|прекрасн\\p{L}*|классно`,
    ],
  },
  nl: {
    strong: [
      `niet (?:meer|minder|later) dan|(?:moet|moeten|mag|mogen) (?:\\p{L}+ ){0,6}(?:niet|geen|nooit|alleen|altijd|worden|zijn|blijven|hebben)|(?:je|u|jullie|we|wij) (?:moet|moeten|mag|mogen)|in geen geval|vanaf nu|uiterlijk|verboden|verplicht|hoogstens|minstens|maximaal|vermijd|alstublieft (?:niet|geen)|allergisch`,
      `(?:gebruik|raak|wijzig|verwijder|schrijf|stuur|publiceer|doe|maak) (?:\\p{L}+ ){0,5}(?:niet|geen|nooit|alleen|altijd)`,
    ],
    weak: ['nooit|altijd|alleen|uitsluitend|niet|geen|liever|overal|zonder'],
    tells: [
      `ik (?:ben|was|heb|had|vind|hou|moest?|denk)|het (?:is|was)|wij (?:waren|hadden)|leuk|mooi|fijn|lief|blij`,
    ],
  },
  pl: {
    strong: [
      `nie (?:wolno|można|należy)|nie (?:więcej|mniej|później) niż|zabronion\\p{L}*|pod żadnym pozorem|od teraz|najpóźniej|(?:musi|muszą|musisz|musicie|należy|trzeba)|nigdy nie \\p{L}+(?:j|uj|aj|ij|cie)|proszę nie|co najwyżej|maksymalnie|wyłącznie|unikaj`,
      `nie \\p{L}+(?:j|jcie|uj|aj|ij|ń|ź)`,
    ],
    weak: ['nigdy|zawsze|tylko|raczej|bez'],
    tells: [`(?:jestem|byłem|byłam|było|mam|miałem|miałam|kocham|lubię|muszę|pięknie|fajnie)`],
  },
  tr: {
    strong: [
      `\\p{L}+(?:may[ıi]n|mey[ıi]n|may[ıi]n[ıi]z|meyiniz|mayınız|mas[ıi]n|mesin|memeli|mamalı|malı|meli|malıs[ıi]n|melisin)|asla|kesinlikle|yasak|zorunlu|gerek(?:li|iyor|ir)|şart|sakın|bundan (?:sonra|böyle)|en (?:geç|fazla|çok|az)`,
      `lütfen (?:\\p{L}+ ){0,6}\\p{L}+(?:ma|me|mayın|meyin)`,
    ],
    weak: ['\\p{L}{3,40}[ıiuü] \\p{L}{2,}(?:ma|me)[.!]*$|her zaman|yalnızca|sadece|hep|hiç(?:bir)?'],
    tells: [`ben|çok güzel|harika|mutlu\\p{L}*|seviyorum|\\p{L}+(?:dım|dim|dum|düm|tım|tim)`],
  },
  vi: {
    strong: [
      'không được|đừng|cấm|phải|bắt buộc|chỉ được|tuyệt đối|từ nay|từ bây giờ|chậm nhất|tối đa|tối thiểu|không bao giờ|nghiêm cấm|vui lòng không|cần phải',
    ],
    weak: ['luôn(?: luôn)?|chỉ|không quá|ít nhất|nhiều nhất'],
    tells: ['tôi (?:đã|rất|thích|yêu|phải)|vui|đẹp|tuyệt vời|hạnh phúc'],
  },
  id: {
    strong: [
      'jangan|dilarang|harus|wajib|tidak boleh|hanya boleh|mulai sekarang|paling lambat|maksimal|hindari',
    ],
    weak: ['selalu|hanya|tidak pernah|paling (?:banyak|sedikit)'],
    tells: ['saya (?:suka|senang|sudah|harus|pernah)|aku|indah|senang'],
  },
  sv: {
    strong: [
      `inte (?:mer|fler|mindre|senare) än|(?:får|ska|skall|måste) (?:\\p{L}+ ){0,4}(?:inte|aldrig|bara|alltid|vara|endast)|förbjud\\p{L}*|under inga omständigheter|från och med nu|senast|högst \\d+|minst \\d+|(?:du|ni|man) (?:måste|får)|undvik`,
    ],
    weak: ['aldrig|alltid|endast|bara|inga?|inte'],
    tells: ['jag (?:är|var|har|hade|älskar|tycker)|det (?:är|var)|roligt|fint|kul'],
  },
  ar: {
    strong: [
      'يجب|ينبغي|ممنوع|يمنع|لا يجوز|لا يمكن|لا ت\\p{L}+|يرجى عدم|من الآن فصاعدا|من الان فصاعدا|على الأكثر|كحد أقصى|بأي حال|إلزامي|تجنب|ضروري',
    ],
    weak: ['أبدا|أبدًا|دائما|دائمًا|فقط|على الأقل|بدون|إلا'],
    tells: ['أنا|كنت|كان|أحب|جميل|سعيد\\p{L}*|رائع'],
  },
  he: {
    strong: [
      'אסור|חייב\\p{L}*|צריך|צריכים|אל ת\\p{L}+|אין ל\\p{L}+|בשום אופן|מעכשיו|מעתה|לכל המאוחר|לכל היותר|חובה|נא לא|להימנע|מותר רק',
    ],
    weak: ['לעולם|תמיד|רק|לפחות|בלי|ללא|אף פעם'],
    tells: ['אני (?:אוהב\\p{L}*|הייתי|שמח\\p{L}*)|היה|הייתה|יפה|נהדר|כיף'],
  },
  hi: {
    strong: [
      'मत|कभी (?:भी )?(?:न|नहीं|मत)|ज़रूर|जरूर|अनिवार्य|चाहिए|मना है|वर्जित|अब से|हर हाल में|ज़रूरी|जरूरी|अधिकतम|(?:न|ना) (?:करें|करो|करना|बदलें|हटाएं|भेजें|\\p{L}+ें)',
    ],
    weak: ['हमेशा|केवल|सिर्फ़?|कम से कम|ज़्यादा से ज़्यादा|बिना'],
    tells: ['मैं|मुझे|था|थी|थे|सुंदर|खुश|प्यार|अच्छा लगा'],
    unspaced: true,
  },
  ko: {
    strong: [
      '지 ?마(?:세요|십시오|라|요|시오|$|[.!])|지 말(?:아|고|것)|안 ?됩니다|안 ?돼(?:요)?|해야 (?:합니다|해요|한다|함)|반드시|절대(?:로)?|금지|앞으로는|늦어도|최대 ?\\d|최소 ?\\d|이하로|이상으로|(?:만|으로만) \\S+(?:세요|십시오)|필수',
    ],
    weak: ['항상|언제나|오직|결코|되도록'],
    tells: ['했어요|였어요|좋아해|사랑해|행복|재미있|예뻐|저는 .{0,20}했'],
    unspaced: true,
  },
  zh: {
    strong: [
      '必须|必須|务必|務必|不要|不得|不能|不可|不准|不许|禁止|只能|只用|千万|请勿|請勿|勿|一定要|应该|應該|从现在起|從現在起|从今以后|无论如何|無論如何|最晚|最迟|不超过|不超過|请(?:只|仅|总是|始终|用)|請(?:只|僅|總是)|更喜欢|优先|優先|拒绝|拒絕|避免|不再|严禁|(?:^|[，,。；])别(?!的|人|致)|请别|過敏|过敏',
    ],
    weak: ['从不|從不|永远|永遠|总是|總是|始终|仅|僅|不想|至少|最多|只'],
    tells: [
      '我(?:很|们|們|好|真|也|从不|总是|永远|不能(?:没有|想象))|真(?:美|棒|好)|开心|開心|喜欢你|爱|愛|了[！!。]?$',
    ],
    unspaced: true,
  },
  ja: {
    strong: [
      '最(?:大|低|長|小) ?\\d|必ず|絶対|決して|ないで(?:ください|下さい|くれ|ほし|$)|しないこと|べき|なければ|てはいけ|てはなら|避けて|今後は|これからは|禁止|不可|厳禁|のみ(?:使|用|で|と|許)|だけ(?:に|を|で)?(?:使|してください|お願い|書|答)|以内|以下に|までに|まで(?:です|とする)?[。.]?$|ないで[。！]?$|ほうがいい|方がいい|アレルギー',
    ],
    weak: ['常に|いつも|だけ|のみ'],
    tells: ['でした|だった|ました|楽しい|嬉しい|好き|きれい|最高|素敵|ですね|よね'],
    unspaced: true,
  },
  th: {
    strong: ['ห้าม|ต้อง|อย่า|เท่านั้น|จากนี้ไป|ไม่เกิน|ไม่อนุญาต'],
    weak: ['เสมอ|ไม่เคย'],
    tells: ['รัก|สนุก|ดีใจ|สวย'],
    unspaced: true,
  },
  el: {
    strong: [
      'μην \\p{L}+|μη \\p{L}+|πρέπει|απαγορεύεται|ποτέ μην|από εδώ και πέρα|υποχρεωτικ\\p{L}*|το πολύ|το αργότερο',
    ],
    weak: ['ποτέ|πάντα|μόνο|χωρίς'],
    tells: ['ήταν|είμαι|αγαπ\\p{L}*|όμορφ\\p{L}*'],
  },
  cs: {
    strong: [
      'nesm[íi]\\p{L}*|musí\\p{L}*|zakázán\\p{L}*|v žádném případě|od teď|nejpozději|nikdy ne\\p{L}+|povinn\\p{L}*|nejvýše|prosím,? ne\\p{L}+',
    ],
    weak: ['nikdy|vždy|pouze|jen|jenom|bez'],
    tells: ['jsem|byl[aoi]?|bylo|mám rád\\p{L}*|krásn\\p{L}*'],
  },
  fi: {
    strong: ['älä|älkää|ei saa|kielletty|täytyy|pitää|vältä|tästä lähtien|viimeistään|enintään|vähintään'],
    weak: ['aina|vain|ei koskaan|ilman'],
    tells: ['minä|olen|olin|oli|rakastan|ihana|kaunis'],
  },
  hu: {
    strong: [
      'soha ne|tilos|kell|kötelező|nem szabad|ne \\p{L}+|mostantól|legkésőbb|legfeljebb|legalább|kérem,? ne',
    ],
    weak: ['soha|mindig|csak|nélkül'],
    tells: ['vagyok|voltam|volt|szeretem|gyönyörű|boldog'],
  },
  ro: {
    strong: [
      'nu \\p{L}+(?:i|ați|a|e) (?:niciodată|nimic|nimeni)|trebuie|interzis\\p{L}*|obligatoriu|în niciun caz|de acum înainte|cel târziu|cel mult|vă rog să nu',
    ],
    weak: ['niciodată|întotdeauna|mereu|doar|numai|fără'],
    tells: ['sunt|eram|era|am fost|iubesc|frumos|fericit\\p{L}*'],
  },
  da: {
    strong: [
      '(?:må|skal|bør) (?:\\p{L}+ ){0,4}(?:ikke|aldrig|kun|altid|være)|forbudt|under ingen omstændigheder|fra nu af|senest|højst|mindst|undgå',
    ],
    weak: ['aldrig|altid|kun'],
    tells: ['jeg (?:er|var|har|havde|elsker|synes)|det (?:er|var)|dejligt|sjovt'],
  },
  uk: {
    strong: [
      "не можна|заборонен\\p{L}*|повин(?:ен|на|но|ні)|обов[’']язково|ніколи не|відтепер|не пізніше|не більше|не \\p{L}+(?:й|йте|іть|и)(?![\\p{L}])|треба",
    ],
    weak: ['ніколи|завжди|тільки|лише|без'],
    tells: ['я \\p{L}+|був|була|було|люблю|щаслив\\p{L}*|гарн\\p{L}*'],
  },
  fa: {
    strong: ['نباید|باید|ممنوع|هرگز|لطفا .{0,40}ن\\p{L}+ید|از این پس|حداکثر|الزامی'],
    weak: ['همیشه|فقط|حداقل|بدون'],
    tells: ['من|بودم|بود|دوست دارم|زیبا|خوشحال'],
  },
};
