"""The fields of gnostic's messages: ``key=number:kind``, a line a message.

Lines that are indented go on with the message before. Kinds are ``string``, ``string[]``, ``bool``, ``flag`` (a bool
that is written even if false), ``int``, ``double``; ``any`` (YAML text); ``{X}``, a message with pairs of names and Xs;
``X[]``, a list of Xs; else the name of a message. ``x-`` stands for extensions, ``*`` for keys that are not listed.
"""

from __future__ import annotations

from typing import Final

V2_TABLE: Final = """
Document swagger=1:string info=2:Info host=3:string basePath=4:string schemes=5:string[] consumes=6:string[]
    produces=7:string[] paths=8:Paths definitions=9:{Schema} parameters=10:{Parameter} responses=11:{Response}
    security=12:{stringarray}[] securityDefinitions=13:{SecurityDefinitionsItem} x-=16:any
Info title=1:string version=2:string description=3:string termsOfService=4:string x-=7:any
Paths x-=1:any *=2:PathItem
PathItem $ref=1:string get=2:Operation put=3:Operation post=4:Operation delete=5:Operation options=6:Operation
    head=7:Operation patch=8:Operation parameters=9:ParametersItem[] x-=10:any
Operation tags=1:string[] summary=2:string description=3:string externalDocs=4:ExternalDocs operationId=5:string
    produces=6:string[] consumes=7:string[] parameters=8:ParametersItem[] responses=9:Responses schemes=10:string[]
    deprecated=11:bool security=12:{stringarray}[] x-=13:any
ExternalDocs description=1:string url=2:string x-=3:any
ParametersItem parameter=1:Parameter reference=2:JsonReference
JsonReference $ref=1:string description=2:string
Parameter body=1:BodyParameter other=2:NonBodyParameter
BodyParameter description=1:string name=2:string in=3:string required=4:bool schema=5:Schema x-=6:any
NonBodyParameter header=1:HeaderParameter formData=2:QueryParameter query=3:QueryParameter path=4:HeaderParameter
HeaderParameter required=1:bool in=2:string description=3:string name=4:string type=5:string format=6:string
    default=9:any maximum=10:double minimum=12:double pattern=16:string uniqueItems=19:bool enum=20:any[] x-=22:any
QueryParameter required=1:bool in=2:string description=3:string name=4:string allowEmptyValue=5:bool type=6:string
    format=7:string default=10:any maximum=11:double minimum=13:double pattern=17:string uniqueItems=20:bool
    enum=21:any[] x-=23:any
Responses x-=2:any *=1:ResponseValue
ResponseValue response=1:Response reference=2:JsonReference
Response description=1:string schema=2:SchemaItem x-=5:any
SchemaItem schema=1:Schema
Schema $ref=1:string format=2:string title=3:string description=4:string default=5:any multipleOf=6:double
    maximum=7:double exclusiveMaximum=8:bool minimum=9:double exclusiveMinimum=10:bool maxLength=11:int
    minLength=12:int pattern=13:string maxItems=14:int minItems=15:int uniqueItems=16:bool maxProperties=17:int
    minProperties=18:int required=19:string[] enum=20:any[] additionalProperties=21:AdditionalPropertiesItem
    type=22:types items=23:ItemsItem allOf=24:Schema[] properties=25:{Schema} discriminator=26:string readOnly=27:bool
    externalDocs=29:ExternalDocs example=30:any x-=31:any
AdditionalPropertiesItem schema=1:Schema boolean=2:flag
ItemsItem schema=1:Schema
SecurityDefinitionsItem basic=1:BasicSecurity apiKey=2:ApiKeySecurity
BasicSecurity type=1:string description=2:string x-=3:any
ApiKeySecurity type=1:string name=2:string in=3:string description=4:string x-=5:any
"""

V3_TABLE: Final = """
Document openapi=1:string info=2:Info paths=4:Paths components=5:Components security=6:{stringarray}[]
    externalDocs=8:ExternalDocs x-=9:any
Info title=1:string description=2:string termsOfService=3:string version=6:string x-=7:any summary=8:string
Paths *=1:PathItem x-=2:any
PathItem $ref=1:string summary=2:string description=3:string get=4:Operation put=5:Operation post=6:Operation
    delete=7:Operation options=8:Operation head=9:Operation patch=10:Operation trace=11:Operation
    parameters=13:ParameterOrReference[] x-=14:any
Operation tags=1:string[] summary=2:string description=3:string externalDocs=4:ExternalDocs operationId=5:string
    parameters=6:ParameterOrReference[] requestBody=7:RequestBodyOrReference responses=8:Responses deprecated=10:bool
    security=11:{stringarray}[] x-=13:any
ExternalDocs description=1:string url=2:string x-=3:any
Reference $ref=1:string summary=2:string description=3:string
ParameterOrReference value=1:Parameter reference=2:Reference
Parameter name=1:string in=2:string description=3:string required=4:bool deprecated=5:bool allowEmptyValue=6:bool
    style=7:string explode=8:bool allowReserved=9:bool schema=10:SchemaOrReference example=11:any
    content=13:{MediaType} x-=14:any
RequestBodyOrReference value=1:RequestBody reference=2:Reference
RequestBody description=1:string content=2:{MediaType} required=3:bool x-=4:any
MediaType schema=1:SchemaOrReference example=2:any x-=5:any
Responses default=1:ResponseOrReference *=2:ResponseOrReference x-=3:any
ResponseOrReference value=1:Response reference=2:Reference
Response description=1:string content=3:{MediaType} x-=5:any
Components schemas=1:{SchemaOrReference} responses=2:{ResponseOrReference} parameters=3:{ParameterOrReference}
    requestBodies=5:{RequestBodyOrReference} securitySchemes=7:{SecuritySchemeOrReference} x-=10:any
SchemaOrReference value=1:Schema reference=2:Reference
Schema nullable=1:bool readOnly=3:bool writeOnly=4:bool externalDocs=6:ExternalDocs example=7:any deprecated=8:bool
    title=9:string multipleOf=10:double maximum=11:double exclusiveMaximum=12:bool minimum=13:double
    exclusiveMinimum=14:bool maxLength=15:int minLength=16:int pattern=17:string maxItems=18:int minItems=19:int
    uniqueItems=20:bool maxProperties=21:int minProperties=22:int required=23:string[] enum=24:any[] type=25:string
    allOf=26:SchemaOrReference[] oneOf=27:SchemaOrReference[] anyOf=28:SchemaOrReference[] not=29:Schema
    items=30:ItemsItem properties=31:{SchemaOrReference} additionalProperties=32:AdditionalPropertiesItem
    default=33:default description=34:string format=35:string x-=36:any
AdditionalPropertiesItem schema=1:SchemaOrReference boolean=2:flag
ItemsItem schema=1:SchemaOrReference
SecuritySchemeOrReference value=1:SecurityScheme reference=2:Reference
SecurityScheme type=1:string description=2:string name=3:string in=4:string scheme=5:string bearerFormat=6:string
    openIdConnectUrl=8:string x-=9:any
"""
